"""Every setting of a run, typed and bounded once: presets, YAML files and dotted overrides all end up here."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from graphwright.losses import PenaltyDirection
from graphwright.transport import Divergence, Objective, Order, Reading

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]


class Settings(BaseModel):
    """Base of all sections: frozen, and unknown names are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ColoringTask(Settings):
    """The Coloring task (SPEC section 4)."""

    capacity: Annotated[int, Field(ge=1, le=250)] = 10
    """Largest number of regions, N."""
    min_size: Count = 5
    """Smallest number of regions."""
    side: Annotated[int, Field(ge=0)] = 0
    """Pixels per side; 0 means 4 N."""
    noise: NotNegative = 0.02
    """Standard deviation of the pixel noise."""
    blur: NotNegative = 0.0
    """Standard deviation of the Gaussian blur, in pixels."""
    min_pixels: Annotated[int, Field(ge=0)] = 0
    """Regions and contacts of fewer pixels are left out of the graph."""
    samples: Annotated[int, Field(ge=0)] = 0
    """Samples in all splits; 0 means 20,000 N."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Which data set: sample i is a pure function of seed, split and i."""


class EncoderKind(StrEnum):
    """Image encoders."""

    CNN = "cnn"
    SEGFORMER = "segformer"


class Model(Settings):
    """The predictor f = head . decoder . encoder."""

    encoder: EncoderKind = EncoderKind.CNN
    encoder_width: Count = 96
    encoder_blocks: Annotated[int, Field(ge=0)] = 3
    """Residual blocks of the convolutional encoder."""
    encoder_weights: Path | None = None
    """Local folder of pretrained SegFormer weights; none: random initialisation."""
    width: Count = 128
    """Width of the node decoder."""
    layers: Count = 3
    heads: Count = 4
    dropout: Share = 0.0
    head_width: Count = 128
    """Hidden width of the output MLPs."""

    @model_validator(mode="after")
    def _heads_divide_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        return self


class MatchingKind(StrEnum):
    """Who provides the plan."""

    LEARNED = "learned"
    TAUGHT = "taught"
    REFINED = "refined"
    MIRROR = "mirror"
    CONDITIONAL_GRADIENT = "conditional_gradient"
    LABELS = "labels"


class CostKind(StrEnum):
    """How the learned matcher compares node embeddings."""

    L1 = "l1"
    INNER_PRODUCT = "inner_product"


class Matching(Settings):
    """The matcher, learned or not (SPEC section 2)."""

    kind: MatchingKind = MatchingKind.LEARNED
    dimension: Count = 128
    """Width of the compared embeddings, d_m."""
    cost: CostKind = CostKind.L1
    epsilon: Positive = 4.5e-5
    """Entropic regularisation on the normalised cost; epsilon N^2 is what means the same at every N."""
    iterations: Count = 20
    """Sinkhorn steps of the learned matcher, K_m."""
    target_layers: Count = 3
    target_width: Count = 128
    positions: Annotated[int, Field(ge=0)] = 8
    """Laplacian eigenvectors given to the target encoder; 0 makes the matcher equivariant."""
    random_signs: bool = True
    """Flip their signs at random in training."""
    detach_states: bool = False
    """Stop the plan's gradient from reaching the predictor (always so while and after teaching)."""
    tau: Positive = 0.1
    """Mirror descent: regularisation."""
    outer: Count = 20
    inner: Count = 20
    steps: Count = 20
    """Conditional gradient: steps at most."""
    refinement: Annotated[int, Field(ge=0)] = 3
    """Refined: mirror steps after the learned plan."""
    imitation: NotNegative = 1.0
    """Taught: weight of the cross-entropy between the learned and the solver's plan."""
    gap: Positive = 0.05
    """Taught: the solver is let go once the objective under the learned plan is within this share of its own."""
    reopened_gap: Positive = 0.2
    """Taught: the solver comes back once the gap exceeds this."""
    probe_every: Count = 50
    """Taught: steps between probes of the gap while the solver is off."""


class Loss(Settings):
    """Weights of the terms and how edges are compared (SPEC section 1)."""

    presence: NotNegative = 1.0
    node_labels: NotNegative = 1.0
    edge_labels: NotNegative = 0.2
    adjacency: NotNegative = 0.5
    marginals: NotNegative = 1.0
    """Weight of the penalty on the plan's marginals; 0 turns it off."""
    diffusion: NotNegative = 1.0
    divergence: Divergence = Divergence.CROSS_ENTROPY
    objective: Objective = Objective.J
    order: Order = Order.PREDICTION_FIRST
    reading: Reading = Reading.ROLE_PRESERVING
    penalty: PenaltyDirection = PenaltyDirection.FORWARD


class Precision(StrEnum):
    """Arithmetic of training, as Lightning Fabric names it."""

    FLOAT32 = "32-true"
    BFLOAT16 = "bf16-mixed"
    FLOAT16 = "16-mixed"


class Train(Settings):
    """Optimiser, budget, data loading, devices."""

    batch_size: Count = 128
    """Samples per step, over all devices."""
    epochs: Count | None = None
    steps: Count | None = None
    minutes: Positive | None = None
    """Budget: the schedule is planned for whichever is given, the strictest if several are."""
    learning_rate: Positive = 1e-3
    minimum_learning_rate: NotNegative = 1e-5
    warmup: Share = 0.05
    """Share of the budget over which the learning rate rises."""
    weight_decay: NotNegative = 0.01
    clip: Positive = 1.0
    """Largest norm of the gradient."""
    precision: Precision = Precision.FLOAT32
    accelerator: str = "auto"
    devices: str = "auto"
    """A number of devices, or auto."""
    nodes: Count = 1
    workers: Annotated[int, Field(ge=0)] = 1
    """Processes that prepare data."""
    threads: Annotated[int, Field(ge=0)] = 0
    """Torch threads; 0 means all cores."""
    seed: Annotated[int, Field(ge=0)] = 0
    augment: bool = True
    log_every: Count = 50
    """Steps between log lines."""
    validate_every: Count = 1000
    """Steps between validations."""
    validation_samples: Count = 512
    checkpoint_minutes: Positive = 2.0
    """Minutes between checkpoints of the last state."""
    metric: str = "isomorphic"
    """Validation metric that names the best checkpoint and stops early; "edit" and "loss" count downwards."""
    patience: Annotated[int, Field(ge=0)] = 0
    """Validations without improvement before stopping; 0 never stops early."""

    @model_validator(mode="after")
    def _has_a_budget(self) -> Self:
        if self.epochs is None and self.steps is None and self.minutes is None:
            raise ValueError("give a budget: epochs, steps or minutes")
        return self


class Run(Settings):
    """A whole run."""

    task: ColoringTask = ColoringTask()
    model: Model = Model()
    matching: Matching = Matching()
    loss: Loss = Loss()
    train: Train = Train(minutes=10)
