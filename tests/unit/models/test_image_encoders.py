"""Image encoders: shapes, and what they refuse."""

import sys

import pytest
import torch

from graphwright.models import ConvolutionalEncoder, SegformerEncoder

transformers = pytest.importorskip("transformers")
SMALL = {"hidden_sizes": [8, 16, 20, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 5, 8]}


@pytest.fixture
def small_weights(tmp_path):
    """A folder of a narrow SegFormer's weights."""
    torch.manual_seed(0)
    model = transformers.SegformerModel(transformers.SegformerConfig(**SMALL))
    model.save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize("side", [4, 16, 20])
@pytest.mark.parametrize("width", [2, 6, 16])
def test_a_convolutional_encoder_gives_a_token_per_four_by_four_pixels(side, width):
    tokens = ConvolutionalEncoder(side, width, 1)(torch.rand(2, 3, side, side))
    assert tokens.shape == (2, (side // 4) ** 2, width)


def test_tokens_say_where_they_are():
    torch.manual_seed(0)
    tokens = ConvolutionalEncoder(16, 6, 1).double()(torch.full((1, 3, 16, 16), 0.5).double())[0]
    assert torch.pdist(tokens).min() > 1e-4


@pytest.mark.parametrize("side", [0, 3, 6, 41])
def test_a_side_that_four_does_not_divide_is_refused(side):
    with pytest.raises(ValueError, match=f"multiple of 4, got {side}"):
        ConvolutionalEncoder(side, 8, 1)


def test_a_width_without_half_is_refused():
    with pytest.raises(ValueError, match="width must be at least 2"):
        ConvolutionalEncoder(8, 1, 1)


# A picture of 4 x 4 has one token, which would spread over all places unnoticed.
@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (2, 3, 12, 12), (2, 1, 8, 8), (2, 3, 8, 4), (3, 8, 8)])
def test_an_image_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"\(b, 3, 8, 8\), got"):
        ConvolutionalEncoder(8, 6, 0)(torch.rand(shape))


def test_the_random_segformer_is_the_b1_variant():
    encoder = SegformerEncoder(32, 12, None)
    config = encoder.backbone.config
    assert (config.hidden_sizes, config.depths) == ([64, 128, 320, 512], [2, 2, 2, 2])
    # MiT-B1 has 13.1 million parameters without its classifier (Xie et al. 2021: 13.7 with the decoder's).
    assert 13.0e6 < sum(parameter.numel() for parameter in encoder.backbone.parameters()) < 13.3e6
    with torch.no_grad():
        assert encoder.eval()(torch.rand(1, 3, 32, 32)).shape == (1, 64, 12)


@pytest.mark.parametrize(("side", "tokens"), [(32, 64), (40, 100), (42, 121)])
def test_segformers_scales_meet_at_a_quarter_of_the_side(small_weights, side, tokens):
    encoder = SegformerEncoder(side, 12, small_weights).eval()
    assert encoder(torch.rand(2, 3, side, side)).shape == (2, tokens, 12)


def test_segformer_loads_the_weights_of_a_local_folder(small_weights):
    saved = transformers.SegformerModel.from_pretrained(small_weights).state_dict()
    torch.manual_seed(1)
    loaded = SegformerEncoder(32, 12, small_weights).backbone.state_dict()
    assert saved.keys() == loaded.keys()
    assert all(torch.equal(saved[name], loaded[name]) for name in saved)


def test_gradient_reaches_every_parameter_of_segformer(small_weights):
    # Large enough for several keys at every scale: attention to a single one has no gradient in its queries.
    encoder = SegformerEncoder(64, 12, small_weights).eval()  # without stochastic depth
    tokens = encoder(torch.rand(2, 3, 64, 64))
    (tokens * torch.randn(tokens.shape)).sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


def test_segformer_runs_under_mixed_precision(small_weights):
    encoder = SegformerEncoder(32, 12, small_weights).eval()
    with torch.autocast("cpu", torch.bfloat16):
        tokens = encoder(torch.rand(1, 3, 32, 32))
    assert torch.isfinite(tokens).all()


@pytest.mark.parametrize("side", [4, 16, 28])
def test_a_side_too_small_for_segformers_attention_is_refused(small_weights, side):
    with pytest.raises(ValueError, match=f"at least 29 for SegFormer, got {side}"):
        SegformerEncoder(side, 12, small_weights)
    SegformerEncoder(29, 12, small_weights)(torch.rand(1, 3, 29, 29))


def test_segformer_refuses_an_image_of_another_size(small_weights):
    with pytest.raises(ValueError, match=r"\(b, 3, 32, 32\), got \(1, 3, 40, 40\)"):
        SegformerEncoder(32, 12, small_weights)(torch.rand(1, 3, 40, 40))


def test_a_folder_without_weights_is_named(tmp_path):
    with pytest.raises(ValueError, match="nowhere is not a folder of pretrained weights"):
        SegformerEncoder(32, 12, tmp_path / "nowhere")


def test_a_folder_that_lost_its_tensors_is_named(small_weights):
    (small_weights / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="is not a folder of pretrained weights"):
        SegformerEncoder(32, 12, small_weights)


def test_another_models_folder_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ValueError, match="holds a bert, not a SegFormer"):
        SegformerEncoder(32, 12, tmp_path)


def test_weights_that_lack_a_layer_are_refused_rather_than_left_random(small_weights):
    from safetensors.torch import load_file, save_file

    file = small_weights / "model.safetensors"
    tensors = load_file(file)
    tensors = {name: tensor.clone() for name, tensor in tensors.items() if "norm" not in name}
    save_file(tensors, file, {"format": "pt"})
    with pytest.raises(ValueError, match=r"does not hold a whole SegFormer: .*norm.* missing"):
        SegformerEncoder(32, 12, small_weights)


def test_without_transformers_segformer_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'graphwright\[image\]'"):
        SegformerEncoder(32, 12, None)


def test_a_model_trained_without_detail_goes_on_with_it_from_where_it_was():
    torch.manual_seed(0)
    plain, detailed = ConvolutionalEncoder(8, 8, 1), ConvolutionalEncoder(8, 8, 1, detail=2)
    detailed.load_state_dict(detailed.state_dict() | plain.state_dict())
    images = torch.rand(2, 3, 8, 8)
    torch.testing.assert_close(detailed(images), plain(images), rtol=0, atol=0)


def test_detail_tells_a_pixel_from_its_neighbour():
    """A pixel and its neighbour, which one step of the shrinking layer takes together."""
    torch.manual_seed(0)
    encoder = ConvolutionalEncoder(8, 8, 1, detail=1)
    with torch.no_grad():
        encoder.detail[-1].weight.normal_()
        encoder.stem[0].weight.zero_()
    image = torch.zeros(2, 3, 8, 8)
    image[0, :, 2, 2], image[1, :, 2, 3] = 1, 1
    first, second = encoder(image)
    assert (first - second).abs().max() > 1e-3
