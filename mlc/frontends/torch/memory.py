"""Tensors that share memory: what TorchScript's in-place operators change, also through views.

The dialect's values never change. A tensor of the program is therefore a handle, the `Tensor` object that stood for
it when it was made; what it holds now is asked for when it is read. Handles that are views of one storage know the way
there: an in-place operator on one of them makes a new value of the storage, by the inverses of the views on the way,
and the others are derived anew when they are read next. Models without in-place operators need none of it.

Whether `reshape` and `contiguous` copy depends on strides, which a file does not have. Where it cannot be known, the
two tensors are remembered as doubtful, and reading one after the other has been written to is an error, not a guess.
Source: PyTorch documentation, "Tensor Views"; the aliases are those of the operators' schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from mlc.frontends.common import elementwise
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.registry import Value


@dataclass(frozen=True)
class Link:
    """One view: how it is read from the tensor that it looks at, and how that tensor becomes when it is written."""

    read: Callable[[Tensor], Tensor]
    write: Callable[[Tensor, Tensor], Tensor]
    """Of the tensor that it looks at, and of the view's new contents."""


@dataclass(eq=False)
class _Storage:
    root: Tensor
    version: int = 0
    kept: str = ""  # the parameter or buffer that it is
    level: int = 0  # in how many branches it was made
    spoiled: str = ""  # why it cannot be read
    doubtful: list[_Storage] = field(default_factory=list)


@dataclass(eq=False)
class _Handle:
    tensor: Tensor  # the key; held so that its id stays its own
    storage: _Storage
    links: tuple[Link, ...]
    version: int
    now: Tensor
    dense: bool
    level: int = 0


class Memory:
    """The handles of a program and their storages.

    `level` is the number of branches that are being built, of which only the run knows whether they are taken: what was
    made outside is not changed inside, and what is derived inside is not kept.
    """

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.level = 0
        self._handles: dict[int, _Handle] = {}

    def _of(self, tensor: Tensor) -> _Handle:
        found = self._handles.get(id(tensor))
        if found is None:
            found = _Handle(tensor, _Storage(tensor), (), 0, tensor, dense=True)
            self._handles[id(tensor)] = found
        return found

    def keep(self, tensor: Tensor, name: str) -> Tensor:
        """`tensor` as the module's `name`, which no run may change."""
        self._of(tensor).storage.kept = name
        return tensor

    def now(self, value: Value) -> Value:
        """What a value holds now: of a handle its tensor, of a list those of its elements.

        Raises NodeError for a tensor of which that cannot be known.
        """
        if isinstance(value, list):
            return [self.now(item) for item in value]
        if isinstance(value, dict):
            return {key: self.now(item) for key, item in value.items()}
        return self._read(self._of(value)) if isinstance(value, Tensor) else value

    def _read(self, handle: _Handle) -> Tensor:
        storage = handle.storage
        if storage.spoiled:
            raise NodeError(storage.spoiled, "use an operation that returns a new tensor there, or clone()")
        if handle.version == storage.version:
            return handle.now
        now = self._path(handle)[-1]
        if handle.level == self.level:
            handle.now, handle.version = now, storage.version
        return now

    def _path(self, handle: _Handle) -> list[Tensor]:
        """The tensors from the storage to the handle."""
        path = [handle.storage.root]
        for link in handle.links:
            path.append(link.read(path[-1]))
        return path

    def fresh(self, value: Value, arguments: list[Value], dense: bool) -> Value:
        """Handles of results in memory of their own; in the order of their extents if `dense` and the arguments are."""
        used = {id(tensor) for tensor in _tensors(arguments)}
        dense = dense and all(self.is_dense(tensor) for tensor in _tensors(arguments))

        def made(item: Value) -> Value:
            if isinstance(item, list):
                return [made(part) for part in item]
            if not isinstance(item, Tensor):
                return item
            tensor = replace(item) if id(item) in used or id(item) in self._handles else item
            handle = self._of(tensor)
            handle.dense, handle.level, handle.storage.level = dense, self.level, self.level
            return tensor

        return made(value)

    def is_dense(self, tensor: Tensor) -> bool:
        """Whether a handle's elements are known to lie in the order of its extents without gaps."""
        return self._of(tensor).dense

    def view(self, base: Tensor, link: Link, now: Tensor, dense: bool) -> Tensor:
        """The handle of a view of the handle `base`, which holds `now`."""
        of = self._of(base)
        tensor = replace(now)
        links = (*of.links, link)
        version, dense = of.storage.version, dense and of.dense
        self._handles[id(tensor)] = _Handle(tensor, of.storage, links, version, now, dense, self.level)
        return tensor

    def doubt(self, base: Tensor, now: Tensor, dense: bool) -> Tensor:
        """The handle of what may be a view of `base` or a copy."""
        tensor = replace(now)
        copy, of = self._of(tensor), self._of(base).storage
        copy.dense, copy.level, copy.storage.level = dense, self.level, self.level
        copy.storage.doubtful.append(of)
        of.doubtful.append(copy.storage)
        return tensor

    def become(self, handle: Tensor, view: Tensor) -> Tensor:
        """Lets `handle` be what `view` is, as `unsqueeze_` and `t_` do."""
        source = self._of(view)
        self._handles[id(handle)] = replace(source, tensor=handle)
        return handle

    def write(self, handle: Tensor, value: Tensor) -> Tensor:
        """Changes what `handle` holds to `value`, which takes its dtype. Raises NodeError where it cannot."""
        b, target = self.b, self._of(handle)
        storage, path = target.storage, self._path(target)
        if storage.level < self.level:
            raise NodeError(
                "it changes a tensor in a branch, and only the run knows whether that is taken",
                "compute a new tensor in both branches",
            )
        if storage.kept:
            raise NodeError(
                f'it changes "{storage.kept}" of the module, and a compiled model keeps nothing from run to run',
                "return the new value, and pass it to the next run as an input",
            )
        value = b.refined(elementwise.cast(b, value, path[-1].dtype), path[-1].shape)
        target.now = value
        for link, base in zip(target.links[::-1], path[-2::-1], strict=True):
            value = b.refined(link.write(base, value), base.shape)
        storage.root = value
        storage.version += 1
        target.version = storage.version
        for other in storage.doubtful:
            other.spoiled = "an in-place operation has changed a tensor that may share memory with this one, or not"
        return handle


def _tensors(value: Value) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _tensors(item)
