"""Weight stores by key: how a pass finds the store that a module names in its attribute `mlc.store`."""

from __future__ import annotations

import threading

from mlc.weights.store import Store, WeightError

_STORES: dict[str, Store] = {}
_LOCK = threading.Lock()


def register(store: Store) -> str:
    """Makes `store` known under `store.key` and returns the key; a store without one gets one first.

    A store that is already known under the key is replaced: equal keys mean equal contents (importers use the
    content hash of the model).
    """
    with _LOCK:
        if not store.key:
            number = len(_STORES)
            while f"store{number}" in _STORES:
                number += 1
            store.key = f"store{number}"
        _STORES[store.key] = store
        return store.key


def lookup(key: str) -> Store:
    """The store known as `key`. Raises `WeightError` when there is none."""
    try:
        return _STORES[key]
    except KeyError:
        raise WeightError(
            f'no weight store is loaded for the module\'s mlc.store = "{key}": '
            "load its .weights file with mlc.weights.Store.load and register it"
        ) from None


def find(key: str) -> Store | None:
    """The store known as `key`, or None."""
    return _STORES.get(key)


def release(key: str) -> None:
    """Forgets the store known as `key`, if any."""
    with _LOCK:
        _STORES.pop(key, None)
