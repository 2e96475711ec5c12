"""Every setting of a run, typed and bounded once: presets, YAML files and dotted overrides all end up here."""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from graphwright.losses import LOSS_TERMS, LossSettings
from graphwright.metrics import METRICS
from graphwright.settings.choices import (
    ENCODERS,
    MATCHINGS,
    TASKS,
    AnyTask,
    Count,
    NameIn,
    NotNegative,
    Positive,
    Settings,
    Share,
    default_task,
    encoders_of,
    task_kind,
)

CORES = "cores"
"""What `train.devices` is where every processor core is a device."""


class ModelKind(StrEnum):
    """How a predictor says which nodes there are and which of them are joined."""

    SLOTS = "slots"
    RELATIONFORMER = "relationformer"


class SlotKind(StrEnum):
    """What the slots of a predictor begin as."""

    LEARNED = "learned"
    TOKENS = "tokens"


class PairKind(StrEnum):
    """How the states of two slots become one of their pair."""

    SUM = "sum"
    PRODUCT = "product"


class Model(Settings):
    """The predictor: an encoder of the input, a decoder with one slot per node, heads for the graph."""

    encoder: Annotated[str, NameIn(ENCODERS)] = "cnn"
    """What reads the input: cnn or segformer pictures, fingerprint, spectrum; columns: what a table's ask for."""
    encoder_width: Count = 96
    """Width of the tokens that the decoder attends to."""
    encoder_blocks: Annotated[int, Field(ge=0)] = 3
    """Residual blocks of the convolutional encoder."""
    encoder_detail: Annotated[int, Field(ge=0)] = 0
    """Residual blocks of the convolutional encoder on the whole picture, before it is shrunk."""
    encoder_layers: Count = 3
    """Layers of the Transformer encoder."""
    encoder_heads: Count = 4
    """Attention heads of the Transformer encoder."""
    encoder_weights: Path | None = None
    """Local folder of pretrained SegFormer weights; none: random initialisation."""
    width: Count = 128
    """Width of the node decoder."""
    layers: Annotated[int, Field(ge=0)] = 3
    """Layers of the node decoder; none is possible where slots are tokens."""
    heads: Count = 4
    """Attention heads of the node decoder."""
    dropout: Share = 0.0
    """Dropout of the Transformer encoder, of the node decoder and of the target encoder."""
    head_width: Count = 128
    """Hidden width of the output MLPs."""
    pairs: PairKind = PairKind.PRODUCT
    """What an edge is read from: x_i + x_j (the paper), or also x_i * x_j."""
    known_graphs: Annotated[int, Field(ge=0)] = 0
    """Training graphs that the model recognises as wholes: counted by a run with loss.recognition, not chosen."""
    slots: SlotKind = SlotKind.LEARNED
    """Slots begin as learned queries (the paper), or as the input's tokens, where these stand for nodes."""
    spare_slots: Annotated[int, Field(ge=0)] = 2
    """Learned slots beside the tokens, for nodes that no token is left for."""
    kind: ModelKind = ModelKind.SLOTS
    """Slots with heads for presence, labels and edges, or Relationformer: one softmax and a relation token."""

    @model_validator(mode="after")
    def _heads_divide_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        return self

    @model_validator(mode="after")
    def _learned_slots_need_layers(self) -> Self:
        if self.layers:
            return self
        if self.slots is SlotKind.LEARNED:
            raise ValueError("layers 0 needs slots tokens: learned slots see the input in the layers alone")
        if self.spare_slots:
            raise ValueError(f"layers 0 needs spare_slots 0, got {self.spare_slots}: they see the input there")
        return self


class CostKind(StrEnum):
    """How the learned matcher compares node embeddings."""

    L1 = "l1"
    INNER_PRODUCT = "inner_product"


class PlanKind(StrEnum):
    """Which plan of a learned matcher the predictor learns from."""

    SOFT = "soft"
    ROUNDED = "rounded"


class Matching(Settings):
    """Who says which predicted node stands for which target node, and how."""

    kind: Annotated[str, NameIn(MATCHINGS)] = "learned"
    """A learned matcher, a solver, the labels alone, or the data's own order."""
    dimension: Count = 128
    """Width of the compared embeddings, d_m."""
    cost: CostKind = CostKind.L1
    """How the learned matcher compares embeddings."""
    temperature: Positive = 4.5e-3
    """Entropic regularisation times N^2 at dimension 256: what means the same at every N, and at every width."""
    linear_costs: NotNegative = 0.0
    """Weight, beside the embeddings' distance, of what presence, labels and diffusion say; 0: not looked at."""
    plan: PlanKind = PlanKind.SOFT
    """The predictor learns from the soft plan (the paper), or from the nearest permutation to it."""
    iterations: Count = 20
    """Sinkhorn steps of the learned matcher, K_m."""
    target_layers: Count = 3
    """Message-passing layers of the target encoder."""
    target_width: Count = 128
    """Width of the target encoder."""
    positions: Annotated[int, Field(ge=0)] = 8
    """Laplacian eigenvectors given to the target encoder; 0 makes the matcher equivariant."""
    random_signs: bool = False
    """Flip their signs at random in training, instead of making the largest entry positive."""
    tau: Positive = 0.1
    """Mirror descent: regularisation."""
    outer: Count = 20
    """Mirror descent: steps at most, K_out."""
    inner: Count = 20
    """Mirror descent: Sinkhorn steps in each, K_in."""
    steps: Count = 20
    """Conditional gradient: steps at most."""
    starts: Count = 1
    """Solvers: starts, the uniform plan first, then random ones; the best result counts."""
    probe_every: Count = 50
    """Steps between two looks at how much more the learned plan costs than a solver's."""


Loss = LossSettings
"""The loss's section is the core's own dataclass, so that a weight is said once."""


class OptimizerKind(StrEnum):
    """What moves the weights."""

    ADAMW = "adamw"
    MUON = "muon"


class Precision(StrEnum):
    """Arithmetic of training, as Lightning Fabric names it, or whichever is faster here."""

    AUTO = "auto"
    FLOAT32 = "32-true"
    BFLOAT16 = "bf16-mixed"
    FLOAT16 = "16-mixed"


class Accelerator(StrEnum):
    """Kinds of device, as Lightning Fabric names them."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class Clock(StrEnum):
    """What the time of a run is; beside other work only the processor's is the same for all."""

    WALL = "wall"
    PROCESSOR = "processor"


class Train(Settings):
    """Optimiser, budget, data loading, devices."""

    batch_size: Count = 128
    """Samples per step, over all devices."""
    accumulate: Count = 1
    """Parts in which a device takes its share of a batch, one after another: a large batch in less memory."""
    epochs: Count | None = None
    """Budget in passes over the training samples; the schedule is planned for the strictest budget given."""
    steps: Count | None = None
    """Budget in steps."""
    minutes: Positive | None = None
    """Budget in minutes of training, over all sessions."""
    clock: Clock = Clock.WALL
    """What minutes and logged seconds count: time passed, or this process's processor time (without workers)."""
    start_from: str | None = None
    """Model whose weights a run begins with where names and shapes fit: a run's folder, a shipped name, a file."""
    optimizer: OptimizerKind = OptimizerKind.ADAMW
    """AdamW for all weights (the paper), or Muon, orthogonalised momentum, for matrices and convolutions."""
    learning_rate: Positive = 1e-3
    """Largest learning rate, reached after the warm-up."""
    minimum_learning_rate: NotNegative = 1e-5
    """Where the cosine ends."""
    warmup: Share = 0.05
    """Share of the budget over which the learning rate rises."""
    weight_decay: NotNegative = 0.01
    """Weight decay, as a share of the learning rate."""
    clip: Positive = 1.0
    """Largest norm of the gradient."""
    averaging: Share = 0.0
    """Decay of the running mean of the predictor's weights, which is validated and shipped; 0: no mean."""
    precision: Precision = Precision.FLOAT32
    """Arithmetic: single, mixed with half precision, or auto: bf16-mixed where the device is made for it."""
    accelerator: Accelerator = Accelerator.AUTO
    """Kind of device."""
    devices: Annotated[
        str, Field(pattern=r"^(auto|cores|[1-9][0-9]*)$", title="a whole number at least 1, auto, or cores")
    ] = "auto"
    """Devices per machine: a number, auto, or cores: `graphwright train` starts a process for each."""
    nodes: Count = 1
    """Machines (torchrun or SLURM start the processes)."""
    workers: Annotated[int, Field(ge=0)] = 1
    """Processes that prepare data."""
    threads: Annotated[int, Field(ge=0)] = 0
    """Torch threads; 0 means all cores."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the weights, the dropout and the order of the samples."""
    augment: bool = True
    """Flip and turn training pictures, draw and vary training spectra, at random; others stay as they are."""
    log_every: Count = 50
    """Steps between log lines."""
    validate_every: Count = 1000
    """Steps between validations."""
    validation_samples: Count = 512
    """Samples in each validation."""
    checkpoint_minutes: Positive = 2.0
    """Minutes between checkpoints of the last state."""
    metric: Annotated[str, NameIn(METRICS)] = "isomorphic"
    """Validation metric that names the best checkpoint and stops early; edits count downwards."""
    patience: Annotated[int, Field(ge=0)] = 0
    """Validations without improvement before stopping; 0 never stops early."""

    @model_validator(mode="after")
    def _has_a_budget(self) -> Self:
        if self.epochs is None and self.steps is None and self.minutes is None:
            raise ValueError("give a budget: epochs, steps or minutes")
        return self

    @model_validator(mode="after")
    def _cores_are_processors(self) -> Self:
        if self.devices == CORES and self.accelerator not in (Accelerator.AUTO, Accelerator.CPU):
            raise ValueError(f"devices {CORES} needs accelerator cpu, got {self.accelerator}: give devices, too")
        return self


RETIRED = {
    "matching.warm_temperature": None,
    "matching.learning_rate_factor": 1.0,
    "matching.detach_states": False,
}
"""Settings that went because they did not help (docs/results/ablations.md), and the value at which they did
nothing: files and models that have it still load."""


class Run(Settings):
    """A whole run."""

    task: AnyTask = Field(default_factory=default_task)
    model: Model = Model()
    matching: Matching = Matching()
    loss: Loss = Loss()
    train: Train = Train(minutes=10)

    @model_validator(mode="before")
    @classmethod
    def _without_retired(cls, given: Any) -> Any:
        """A model that was trained before they went still loads."""
        if not isinstance(given, dict):
            return given
        kept = dict(given)
        for key, nothing in RETIRED.items():
            section, _, name = key.partition(".")
            values = kept.get(section)
            if isinstance(values, dict) and name in values:
                if values[name] != nothing:
                    raise ValueError(f"{key} {values[name]} is no longer there: it did not help")
                kept[section] = {other: value for other, value in values.items() if other != name}
        return kept

    @model_validator(mode="before")
    @classmethod
    def _encoder_of_the_task(cls, given: Any) -> Any:
        """Without a word about the encoder, the task's own is meant."""
        if not isinstance(given, dict):
            return given
        kind = task_kind(given.get("task"))
        model = given.get("model", {})
        if isinstance(model, Model) and "encoder" not in model.model_fields_set:
            model = model.model_dump(exclude_unset=True)
        if kind not in TASKS or not isinstance(model, dict) or "encoder" in model:
            return given
        return {**given, "model": {**model, "encoder": TASKS[kind].settings_class.default_encoder}}

    @model_validator(mode="before")
    @classmethod
    def _terms_of_other_packages(cls, given: Any) -> Any:
        """Weights of registered terms are given beside the others, as `loss.NAME`."""
        loss = given.get("loss") if isinstance(given, dict) else None
        if not isinstance(loss, dict):
            return given
        own = {field.name for field in fields(Loss)}
        further = {name: weight for name, weight in loss.items() if name not in own and name in LOSS_TERMS}
        kept = {name: value for name, value in loss.items() if name not in further}
        return {**given, "loss": {**kept, "further": {**loss.get("further", {}), **further}}}

    @model_serializer(mode="wrap")
    def _with_terms_beside_the_others(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As they are given."""
        written: dict[str, Any] = handler(self)
        if "loss" in written:
            loss = dict(written["loss"])
            written["loss"] = loss | loss.pop("further", {})
        return written

    @model_validator(mode="after")
    def _terms_are_known(self) -> Self:
        for name in self.loss.further:
            _ = LOSS_TERMS[name]
        return self

    @model_validator(mode="after")
    def _encoder_reads_the_task(self) -> Self:
        kinds, encoder = encoders_of(self.task.input_kinds), ENCODERS[self.model.encoder]
        if self.model.encoder not in kinds:
            raise ValueError(
                f"model.encoder {self.model.encoder} cannot read the inputs of task.kind {self.task.kind}; "
                f"it takes {' or '.join(kinds)}"
            )
        if encoder.attends and self.model.encoder_width % self.model.encoder_heads:
            raise ValueError(
                f"model.encoder_width {self.model.encoder_width} is not a multiple of "
                f"model.encoder_heads {self.model.encoder_heads}"
            )
        return self

    @model_validator(mode="after")
    def _relations_are_matched_by_labels(self) -> Self:
        model, matching = self.model, self.matching
        if model.kind is ModelKind.RELATIONFORMER and matching.kind != "labels":
            raise ValueError(f"model.kind {model.kind} needs matching.kind labels, got {matching.kind}")
        if model.kind is ModelKind.RELATIONFORMER and any(self.loss.further.values()):
            names = " and ".join(f"loss.{name}" for name in self.loss.further)
            raise ValueError(f"model.kind {model.kind} has a loss of its own, without {names}")
        return self

    @model_validator(mode="after")
    def _tokens_are_slots(self) -> Self:
        model = self.model
        if model.slots is SlotKind.LEARNED:
            return self
        tokens = f"model.slots {model.slots}"
        if not ENCODERS[model.encoder].owning:
            raise ValueError(f"{tokens} needs an encoder whose tokens stand for nodes, got {model.encoder}")
        if model.kind is ModelKind.RELATIONFORMER:
            raise ValueError(f"{tokens} needs model.kind {ModelKind.SLOTS}, got {model.kind}")
        if model.known_graphs or self.loss.recognition:
            raise ValueError(f"{tokens} cannot recognise whole graphs: loss.recognition must be 0")
        return self

    @model_validator(mode="after")
    def _matching_goes_with_the_rest(self) -> Self:
        MATCHINGS[self.matching.kind].check(self)
        return self
