"""Which parts of a graph are gates, and which layers feed activations that integers cannot do."""

import numpy as np

from assay.building.preparation import layers, prepare
from assay.building.structure import curved, gates, place
from support.networks import CLASSES, dense, excited, kernels, network, plain


def made(graph, names):
    """The outputs of the nodes with some names."""
    return {node.output[0] for node in graph.node if node.name in names}


def test_a_squeeze_and_excite_branch_is_a_gate_and_the_classifiers_pool_is_none():
    graph = prepare(excited()).graph
    assert made(graph, gates(graph)) == {"pool", "c2", "r2", "c3", "s3"}
    assert gates(prepare(plain()).graph) == set()


def test_a_gate_may_be_a_mean_and_end_in_a_sigmoid_through_dense_layers():
    model = network(
        """c = Conv(x, w)
        mean = ReduceMean<axes=[2,3], keepdims=0>(c)
        d1 = MatMul(mean, w1)
        s1 = Sigmoid(d1)
        wide = Reshape(s1, shape)
        scaled = Mul(c, wide)
        pooled = GlobalAveragePool(scaled)
        logits = Flatten(pooled)""",
        w=kernels(1, CLASSES, 3, 1), w1=dense(2, CLASSES, CLASSES), shape=np.array([-1, CLASSES, 1, 1]),
    )  # fmt: skip
    graph = prepare(model).graph
    assert made(graph, gates(graph)) == {"mean", "d1", "s1", "wide"}


def test_layers_before_hard_swish_are_curved_and_those_before_relu_are_not():
    graph = prepare(excited()).graph
    assert made(graph, curved(graph)) == {"c1", "c3"}
    assert curved(prepare(plain()).graph) == set()


def test_hard_swish_written_out_by_an_exporter_is_curved_too():
    model = network(
        """c = Conv(x, w)
        more = Add(c, three)
        cut = Clip(more, zero, six)
        product = Mul(c, cut)
        swish = Div(product, six)
        pooled = GlobalAveragePool(swish)
        logits = Flatten(pooled)""",
        w=kernels(1, CLASSES, 3, 1), three=np.float32(3), zero=np.float32(0), six=np.float32(6),
    )  # fmt: skip
    graph = prepare(model).graph
    assert made(graph, curved(graph)) == {"c"}


def test_the_place_of_a_layer_is_itself_and_what_reads_it_through_relu():
    graph = prepare(excited()).graph
    places = {node.output[0]: made(graph, place(graph, node)) for node in layers(graph)}
    assert places["c1"] == {"c1", "h1"}
    assert places["c2"] == {"c2", "r2", "c3"}
    assert places["c4"] == {"c4", "r4", "pooled"}
    assert places["logits"] == {"logits"}
