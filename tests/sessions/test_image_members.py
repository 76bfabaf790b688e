"""The bank for images: its members learn small digits, and their view of images is what it says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.errors import CredoError
from credo.core.trees import ravel
from credo.linalg.jacobians import OuterRows
from credo.models import OrientedEdges
from credo.recipes.image_members import image_bank, image_members_of
from credo.streams.scoring import score_chunk


@pytest.mark.slow
def test_the_bank_learns_small_digits_and_its_weights_are_probabilities() -> None:
    data = credo.datasets.load("digits")
    xs, ys = np.asarray(data.x, np.float32).reshape(-1, 8, 8)[:200] / 8, data.y[:200].astype(np.int32)
    learner = image_bank(image_members_of(), credo.Categorical(10), (8, 8), 10, seed=0)
    belief, outcome, info = score_chunk(learner, learner.init(), xs, ys)
    assert bool(info.ok.all())
    assert abs(float(belief.weights.sum()) - 1) < 1e-5
    assert float(outcome.log_prob[100:].mean()) > -0.5  # the prior alone gives -2.3, pixels -0.9


def test_edges_say_where_an_edge_is_and_which_side_is_bright_whatever_the_contrast() -> None:
    net = OrientedEdges(credo.Linear(2), directions=4, cells=2)
    image = np.zeros((8, 8))
    image[:, 4:] = 1.0
    seen = np.asarray(net.see(image))
    edges, brightness = seen[:16].reshape(2, 2, 4), seen[16:].reshape(2, 2)
    assert edges[..., 0].min() > 1.0  # brighter to the right, in every cell beside the edge
    np.testing.assert_allclose(edges[..., 1:], 0.0, atol=1e-6)
    assert (brightness[:, 1] > 0.8).all() and (brightness[:, 0] < 0.2).all()
    np.testing.assert_allclose(net.see(0.5 * image)[:16], seen[:16], atol=0.01)
    np.testing.assert_allclose(net.see(image[:, ::-1])[:16].reshape(2, 2, 4)[:, :, 2], edges[:, ::-1, 0])


@pytest.mark.slow
def test_a_large_network_of_edges_has_outer_rows_which_are_its_jacobian() -> None:
    net = OrientedEdges(credo.MLP(3, (80,), "elu"))
    model, image = credo.Model(net, credo.Categorical(3)), np.random.default_rng(0).random((9, 8, 1))
    params = jax.tree.map(lambda leaf: leaf.astype(float), net.init(0, (9, 8, 1)))
    vector, unravel = ravel(params)
    eta, rows = model.linearize(vector, unravel, image)
    assert isinstance(rows, OuterRows)
    np.testing.assert_allclose(eta, net(params, image), atol=1e-12)
    np.testing.assert_allclose(
        rows.dense(), jax.jit(jax.jacobian(lambda v: net(unravel(v), image)))(vector), atol=1e-10
    )


def test_edges_of_what_is_no_image_are_refused() -> None:
    with pytest.raises(CredoError, match=r"needs images .* got shape \(64,\)"):
        OrientedEdges(credo.Linear(2)).init(0, (64,))
    assert OrientedEdges(credo.Linear(2)).see(jnp.ones((1, 5))).shape == (14,)
