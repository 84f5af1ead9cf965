"""Small networks in ONNX's text form, for tests of what depends on a graph's shape."""

import numpy as np
import onnx
from onnx import numpy_helper, parser

from support.small_packs import CROP

CLASSES = 4


def network(body: str, opset: int = 17, **weights: np.ndarray) -> bytes:
    """Return a model from its nodes: they read `x`, float [N,3,32,32] in 0..1, and make `logits`, float [N,4].

    `weights` are its initialisers by name.
    """
    text = f"""<ir_version: 7, opset_import: ["" : {opset}]>
    small (uint8[N,{CROP},{CROP},3] images) => (float[N,{CLASSES}] logits)
    {{
        cast = Cast<to=1>(images)
        chw = Transpose<perm=[0,3,1,2]>(cast)
        x = Mul(chw, unit)
        {body}
    }}"""
    model = parser.parse_model(text)
    weights["unit"] = np.float32(1 / 255)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(w), name) for name, w in weights.items())
    onnx.checker.check_model(model)
    return model.SerializeToString()


def kernels(seed: int, outputs: int, inputs: int, size: int) -> np.ndarray:
    """Return convolution weights of a scale that keeps activations near 1."""
    shape = (outputs, inputs, size, size)
    return np.random.default_rng(seed).normal(0, (2 / (inputs * size * size)) ** 0.5, shape).astype(np.float32)


def dense(seed: int, outputs: int, inputs: int) -> np.ndarray:
    """Return weights of a dense layer, [outputs, inputs]."""
    return np.random.default_rng(seed).normal(0, inputs**-0.5, (outputs, inputs)).astype(np.float32)


def plain(opset: int = 17) -> bytes:
    """Two convolutions with a batch norm and a ReLU each, nameless, as an exporter writes them."""
    rng = np.random.default_rng(7)
    norms = {
        f"{name}{number}": (rng.uniform(0.5, 1.5, 16)).astype(np.float32)
        for name in ("gamma", "beta", "mean", "var")
        for number in (1, 2)
    }
    return network(
        """c1 = Conv<pads=[1,1,1,1]>(x, w1, b1)
        n1 = BatchNormalization<epsilon=0.001>(c1, gamma1, beta1, mean1, var1)
        r1 = Relu(n1)
        c2 = Conv<pads=[1,1,1,1], strides=[2,2]>(r1, w2)
        n2 = BatchNormalization(c2, gamma2, beta2, mean2, var2)
        r2 = Relu(n2)
        pooled = GlobalAveragePool(r2)
        flat = Flatten(pooled)
        logits = Gemm<transB=1>(flat, w3)""",
        opset,
        w1=kernels(1, 16, 3, 3), b1=rng.normal(size=16).astype(np.float32), w2=kernels(2, 16, 16, 3),
        w3=dense(3, CLASSES, 16), **norms,
    )  # fmt: skip


def excited() -> bytes:
    """A squeeze-and-excite block and HardSwish, as MobileNetV3 has them: the layers are stem, squeeze, excite, last."""
    return network(
        """c1 = Conv<pads=[1,1,1,1]>(x, stem)
        h1 = HardSwish(c1)
        pool = GlobalAveragePool(h1)
        c2 = Conv(pool, squeeze)
        r2 = Relu(c2)
        c3 = Conv(r2, excite)
        s3 = HardSigmoid<alpha=0.1666667, beta=0.5>(c3)
        scaled = Mul(s3, h1)
        c4 = Conv<pads=[1,1,1,1]>(scaled, last)
        r4 = Relu(c4)
        pooled = GlobalAveragePool(r4)
        flat = Flatten(pooled)
        logits = Gemm<transB=1>(flat, classifier)""",
        stem=kernels(1, 16, 3, 3), squeeze=kernels(2, 4, 16, 1), excite=kernels(3, 16, 4, 1),
        last=kernels(4, 16, 16, 3), classifier=dense(5, CLASSES, 16),
    )  # fmt: skip


def chain() -> bytes:
    """Six convolutions and a dense layer, of which the fourth (`conv-9`) answers nothing in 8 bits.

    Weights of an input that is always zero are a thousand times the others there, which then round to zero.
    """
    before, spoilt = kernels(12, 16, 16, 3), kernels(13, 16, 16, 3)
    before[0] = 0
    spoilt[:, 0] *= 1000
    weights = {f"w{i}": kernels(10 + i, 16, 16 if i else 3, 3) for i in range(6)} | {"w2": before, "w3": spoilt}
    source = ["x", *(f"r{i}" for i in range(6))]
    body = "".join(f"c{i} = Conv<pads=[1,1,1,1]>({source[i]}, w{i})  r{i} = Relu(c{i})\n" for i in range(6))
    body += "pooled = GlobalAveragePool(r5)  flat = Flatten(pooled)  logits = Gemm<transB=1>(flat, d)"
    return network(body, d=dense(9, CLASSES, 16), **weights)
