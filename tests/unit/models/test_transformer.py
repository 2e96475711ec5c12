"""Our layers beside torch's: the same names, the same numbers, the same gradients."""

import pytest
import torch
from torch import Tensor, nn

from graphwright.models.transformer import Attention, decoder_layers, encoder_layers

WIDTH, HEADS, LAYERS = 12, 3, 2
SHAPE = {
    "d_model": WIDTH,
    "nhead": HEADS,
    "dim_feedforward": 4 * WIDTH,
    "dropout": 0.0,
    "activation": "gelu",
    "batch_first": True,
    "norm_first": True,
    "dtype": torch.float64,
}


def tokens(length: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, length, WIDTH, generator=generator, dtype=torch.float64).requires_grad_()


def mask(length: int) -> Tensor:
    """True at real tokens: all, some, one."""
    return torch.arange(length) < torch.tensor([[length], [length - 2], [1]])


def scattered(module: nn.Module) -> nn.Module:
    """With weights and biases anywhere: nothing is equal for being zero or one."""
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module


def torch_encoder() -> nn.Module:
    norm = nn.LayerNorm(WIDTH, dtype=torch.float64)
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(**SHAPE), LAYERS, norm, enable_nested_tensor=False)


def torch_decoder() -> nn.Module:
    norm = nn.LayerNorm(WIDTH, dtype=torch.float64)
    return nn.TransformerDecoder(nn.TransformerDecoderLayer(**SHAPE), LAYERS, norm)


def assert_same(ours: nn.Module, theirs: nn.Module, found: Tensor, expected: Tensor, inputs: list[Tensor]) -> None:
    """Outputs, and gradients of all inputs and of all parameters."""
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
    direction = torch.randn(found.shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    gradients = []
    for module, output in ((ours, found), (theirs, expected)):
        named = dict(module.named_parameters())
        given = torch.autograd.grad((output * direction).sum(), [*inputs, *named.values()])
        gradients.append(dict(zip([*range(len(inputs)), *named], given, strict=True)))
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        close = torch.allclose(gradient, gradients[1][name], rtol=1e-8, atol=1e-11)
        assert close, (name, float((gradient - gradients[1][name]).abs().max()))
        assert gradient.abs().max() > 0, name


@pytest.mark.parametrize("masked", [False, True])
def test_the_encoder_is_torchs(masked):
    theirs, ours = scattered(torch_encoder()), encoder_layers(WIDTH, LAYERS, HEADS, 0.0).double()
    ours.load_state_dict(theirs.state_dict())
    given, seen = tokens(5, 1), mask(5) if masked else None
    expected = theirs(given, src_key_padding_mask=None if seen is None else ~seen)
    assert_same(ours, theirs, ours(given, seen), expected, [given])


@pytest.mark.parametrize("masked", [False, True])
def test_the_decoder_is_torchs(masked):
    theirs, ours = scattered(torch_decoder()), decoder_layers(WIDTH, LAYERS, HEADS, 0.0).double()
    ours.load_state_dict(theirs.state_dict())
    slots, given, seen = tokens(4, 1), tokens(6, 2), mask(6) if masked else None
    expected = theirs(slots, given, memory_key_padding_mask=None if seen is None else ~seen)
    assert_same(ours, theirs, ours(slots, given, seen), expected, [slots, given])


def test_what_is_masked_does_not_count():
    encoder, decoder = (make(WIDTH, LAYERS, HEADS, 0.0).double() for make in (encoder_layers, decoder_layers))
    given, slots, seen = tokens(5, 1), tokens(4, 2), mask(5)
    other = torch.where(seen[:, :, None], given, 100 * torch.ones_like(given))
    torch.testing.assert_close(encoder(given, seen)[seen], encoder(other, seen)[seen], rtol=0, atol=1e-12)
    torch.testing.assert_close(decoder(slots, given, seen), decoder(slots, other, seen), rtol=0, atol=1e-12)
    assert (encoder(given, None) - encoder(other, None))[seen].abs().max() > 1e-3


@pytest.mark.parametrize("make", [encoder_layers, decoder_layers])
def test_dropout_is_of_training_only(make):
    torch.manual_seed(0)
    layers, given = make(WIDTH, LAYERS, HEADS, 0.5).double(), tokens(5, 1)
    words = (given, None) if make is encoder_layers else (given, tokens(3, 2), None)
    assert not torch.equal(layers(*words), layers(*words))
    layers.eval()
    assert torch.equal(layers(*words), layers(*words))


@pytest.mark.parametrize("make", [encoder_layers, decoder_layers])
def test_weights_begin_as_torchs_do_and_every_layer_with_its_own(make):
    """Xavier's uniform range for matrices, as torch's Transformer has it; no attention begins with a bias."""
    torch.manual_seed(0)
    first, second = make(24, 2, HEADS, 0.0).layers
    assert not torch.equal(first.linear1.weight, second.linear1.weight)
    for name, parameter in first.named_parameters():
        if parameter.ndim == 2:
            bound = (6 / sum(parameter.shape)) ** 0.5
            assert 0.95 * bound < float(parameter.detach().abs().max()) <= bound, name
        elif "attn" in name:
            assert not parameter.any(), name


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match="width 12 is not a multiple of heads 5"):
        Attention(12, 5, 0.0)
    for make in (encoder_layers, decoder_layers):
        with pytest.raises(ValueError, match="width 12 is not a multiple of heads 5"):
            make(12, 1, 5, 0.0)
