"""`mlc.weights.Store`: laziness, bounded memory, recipes, files."""

from __future__ import annotations

import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file

from mlc.interp import ResultType
from mlc.weights import Recipe, Step, Store, WeightError, registry
from mlc.weights.safetensors import FormatError, SafetensorsFile

W = np.arange(6, dtype=np.float32).reshape(2, 3)


def transposed(name: str, shape: tuple[int, ...] = (3, 2)) -> Recipe:
    step = Step("mlc.transpose", ({"weight": name},), {"permutation": [1, 0]}, (ResultType(shape, "f32"),))
    return Recipe((step,))


def scaled_transpose(name: str) -> Recipe:
    f32 = ResultType((3, 2), "f32")
    steps = (
        Step("mlc.transpose", ({"weight": name},), {"permutation": [1, 0]}, (f32,)),
        Step("mlc.constant", (), {"value": np.float32(10)}, (ResultType((), "f32"),)),
        Step("mlc.binary", ({"step": 0}, {"step": 1}), {"kind": "mul"}, (f32,)),
    )
    return Recipe(steps)


def test_arrays_functions_and_types() -> None:
    store, calls = Store(), []

    def make() -> np.ndarray:
        calls.append(1)
        return W * 2

    store.add("a", W)
    store.add("b", make, (2, 3), "float32")
    assert not calls and store.info("b").nbytes == 24
    assert store.get("a") is W
    np.testing.assert_array_equal(store.get("b"), W * 2)
    store.get("b")
    assert len(calls) == 1
    store.add("u", np.array([255], np.uint8))
    assert store.info("u").dtype == "i8" and store.get("u").dtype == np.int8
    store.add("h", np.ones(2, ml_dtypes.bfloat16), dtype="bfloat16")
    assert store.info("h").dtype == "bf16" and list(store) == ["a", "b", "u", "h"]
    assert store.unique_name("a") == "a.1" and store.unique_name("c") == "c"


def test_errors() -> None:
    store = Store()
    store.add("a", W)
    with pytest.raises(WeightError, match="already"):
        store.add("a", W)
    with pytest.raises(WeightError, match="no weight named 'z'"):
        store.get("z")
    with pytest.raises(WeightError, match=r"weight 'b' is float32\[2, 3\], its type says f32\[3, 2\]"):
        store.add("b", W, (3, 2))
    store.add("c", lambda: W, (2, 3), "f64")
    with pytest.raises(WeightError, match="its type says f64"):
        store.get("c")
    with pytest.raises(WeightError, match="needs the shape"):
        store.add("d", lambda: W)
    with pytest.raises(WeightError, match="reads 'nothing', which is not in the store"):
        store.add_recipe("e", transposed("nothing"))
    with pytest.raises(WeightError, match="read each other"):
        store.add_recipes({"x": transposed("y"), "y": transposed("x")})
    store.add_recipe("wrong", transposed("a", (2, 2)))
    with pytest.raises(WeightError, match="recipe of weight 'wrong' fails: mlc.transpose: result 0"):
        store.get("wrong")


def test_recipes_in_any_order_and_through_json() -> None:
    store = Store()
    store.add("w", W)
    recipes = {"t.t": transposed("t", (2, 3)).to_json(), "t": scaled_transpose("w").to_json()}
    assert store.add_recipes(recipes) == ["t.t", "t"]
    np.testing.assert_array_equal(store.get("t.t"), W * 10)
    again = Recipe.from_json(scaled_transpose("w").to_json())
    assert again.digest() == scaled_transpose("w").digest() != transposed("w").digest()
    assert again.inputs() == ["w"]
    assert store.add_recipes({"t": again}) == ["t"] and len(store) == 3


def test_intermediate_results_are_dropped_after_their_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    import mlc.weights.recipe as module

    alive: list[int] = []
    real = module.evaluate

    def spy(op: str, inputs: list[np.ndarray], attrs: dict, results: list[ResultType]) -> list[np.ndarray]:
        alive.append(len(inputs))
        return real(op, inputs, attrs, results)

    monkeypatch.setattr(module, "evaluate", spy)
    f32 = ResultType((3,), "f32")
    neg = [Step("mlc.unary", ({"step": i - 1} if i else {"weight": "w"},), {"kind": "neg"}, (f32,)) for i in range(4)]
    y = Recipe(tuple(neg), (1, 0)).evaluate(lambda name: np.ones(3, np.float32))
    np.testing.assert_array_equal(y, np.ones(3))
    assert len(alive) == 4


def test_cache_is_bounded_and_least_recently_used_goes_first() -> None:
    store, calls = Store(cache_bytes=64), dict.fromkeys("abc", 0)

    def maker(name: str) -> None:
        def make() -> np.ndarray:
            calls[name] += 1
            return np.zeros(8, np.float32)

        store.add(name, make, (8,), "f32")

    for name in calls:
        maker(name)
    for name in "abacb":
        store.get(name)
    assert calls == {"a": 1, "b": 2, "c": 1}
    big = Store(cache_bytes=8)
    big.add("x", lambda: np.zeros(8, np.float32), (8,), "f32")
    assert big.get("x") is not big.get("x")


def test_a_stack_has_the_recipe_of_each() -> None:
    """Steps are those of one weight; inputs that are no stack are the same for all of them."""
    f32 = ResultType((3, 2), "f32")
    steps = (
        Step("mlc.transpose", ({"weight": "stack", "stacked": True},), {"permutation": [1, 0]}, (f32,)),
        Step("mlc.binary", ({"step": 0}, {"weight": "row"}), {"kind": "mul"}, (f32,)),
    )
    recipe = Recipe(steps, stack=4)
    stack, row = np.arange(24, dtype=np.float32).reshape(4, 2, 3), np.array([2, 3], np.float32)
    store = Store()
    store.add("stack", stack)
    store.add("row", row)
    store.add_recipe("each", recipe.to_json())
    assert store.info("each").shape == (4, 3, 2) and store.recipe("each").digest() == recipe.digest()
    np.testing.assert_array_equal(store.get("each"), stack.transpose(0, 2, 1) * row)
    again = Step("mlc.transpose", ({"weight": "each", "stacked": True},), {"permutation": [1, 0]}, f32_of((2, 3)))
    store.add_recipe("back", Recipe((again,), stack=4))
    np.testing.assert_array_equal(store.get("back"), stack * row[:, None])
    assert Recipe(steps, stack=3).digest() != recipe.digest() != Recipe(steps).digest()


def f32_of(shape: tuple[int, ...]) -> tuple[ResultType, ...]:
    return (ResultType(shape, "f32"),)


def test_hash_depends_on_content_type_and_recipe() -> None:
    one, two = Store(), Store()
    one.add("a", W)
    two.add("other", W.copy())
    assert one.hash("a") == two.hash("other")
    two.add("flat", W.reshape(6))
    two.add("bits", W.view(np.int32))
    assert len({two.hash(n) for n in two}) == 3
    one.add_recipe("t", transposed("a"))
    two.add_recipe("t", transposed("other"))
    one.add("broken", lambda: 1 / 0, (1,), "f32")  # type: ignore[arg-type, return-value]
    assert len(one.hash("t")) == 64


def test_save_and_load(tmp_path: Path) -> None:
    store = Store("model-1")
    arrays = {
        "f": W,
        "half": np.float16([1, -2]),
        "brain": np.array([[1.5]], ml_dtypes.bfloat16),
        "e4": np.array([448, -1], ml_dtypes.float8_e4m3fn),
        "fnuz": np.array([1, 2, 3], ml_dtypes.float8_e4m3fnuz),
        "nibble": np.array([[-8, 7, 3]], ml_dtypes.int4),
        "flags": np.array([True, False]),
        "long": np.int64([-1]),
        "scalar": np.float64(3),
        "empty": np.zeros((0, 4), np.float32),
        "strided": W.T,
    }
    for name, array in arrays.items():
        store.add(name, array)
    store.add_recipe("t", scaled_transpose("f"))
    path = tmp_path / "m.weights"
    store.save(path)
    loaded = Store.load(path)
    assert loaded.key == "model-1" and set(loaded) == set(store)
    for name, array in arrays.items():
        np.testing.assert_array_equal(loaded.get(name), array)
        assert loaded.info(name) == store.info(name)
        assert loaded.hash(name) == store.hash(name)
    np.testing.assert_array_equal(loaded.get("t"), W.T * 10)
    second = tmp_path / "again.weights"
    loaded.save(second)
    assert second.read_bytes() == path.read_bytes()
    assert [p.name for p in tmp_path.iterdir()] == ["m.weights", "again.weights"] or len(list(tmp_path.iterdir())) == 2


def test_standard_readers_understand_the_file(tmp_path: Path) -> None:
    store = Store()
    store.add("w", W)
    store.add("n", np.array([1, -1], ml_dtypes.int4))
    store.save(tmp_path / "m.safetensors")
    theirs = load_file(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(theirs["w"], W)
    assert theirs["n"].shape == (2, 1)


def test_a_failed_save_leaves_nothing(tmp_path: Path) -> None:
    store = Store()
    store.add("w", lambda: np.zeros(3, np.float32), (2,), "f32")
    with pytest.raises(WeightError):
        store.save(tmp_path / "m.weights")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"abc",
        (100).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (2).to_bytes(8, "little") + b"{x",
    ],
)
def test_malformed_files(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    with pytest.raises(FormatError, match="bad.safetensors is not a safetensors file"):
        SafetensorsFile(path)


def test_truncated_data(tmp_path: Path) -> None:
    header = b'{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'
    path = tmp_path / "cut.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(FormatError, match="tensor 'w'"):
        SafetensorsFile(path)


def test_threads_share_one_evaluation() -> None:
    store, calls = Store(), []
    store.add("x", lambda: (calls.append(1), np.ones(4, np.float32))[1], (4,), "f32")
    threads = [threading.Thread(target=store.get, args=("x",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


def test_registry() -> None:
    store = Store()
    key = registry.register(store)
    assert registry.lookup(key) is store and store.key == key
    registry.release(key)
    assert registry.find(key) is None
    with pytest.raises(WeightError, match="no weight store is loaded"):
        registry.lookup(key)
