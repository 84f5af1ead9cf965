"""``pack.json``: what a pack says about its model. Pure data; its field names are the file format."""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from assay.errors import PackError

FORMAT = 1
"""Version of the pack layout. A reader refuses every other."""

Precision = Literal["FP32", "INT8"]

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
"""``sha256:`` and 64 lower-case hexadecimal digits."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def is_digest(text: str) -> bool:
    """Say whether a text is a well-formed digest."""
    return _DIGEST.fullmatch(text) is not None


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Normalisation(_Frozen):
    """``(x - mean) / scale`` per channel (R, G, B) in 0..255; already inside the graph, here for the reader."""

    mean: tuple[float, float, float]
    scale: tuple[float, float, float]


class Preprocess(_Frozen):
    """From an oriented RGB photo to the model's input; satisfies ``assay.vision.preprocess.Geometry``.

    The photo's short side is resized to ``resize_short`` pixels, then the centre ``crop`` x ``crop`` is taken.
    """

    resize_short: int = Field(ge=16, le=2048)
    crop: int = Field(ge=16, le=2048)
    interpolation: Literal["bilinear", "bicubic"]
    normalisation: Normalisation

    @model_validator(mode="after")
    def _crop_fits(self) -> "Preprocess":
        if self.crop > self.resize_short:
            raise ValueError(f"crop {self.crop} is larger than resize_short {self.resize_short}")
        return self


class Source(_Frozen):
    """Where the weights came from."""

    name: str = Field(min_length=1, max_length=200)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="of the file that held the weights")
    licence: str = Field(max_length=100)


class Agreement(_Frozen):
    """How the quantised model compared with the one it was made from, when it was made."""

    dataset_digest: Digest
    images: int = Field(ge=0)
    groups: int = Field(ge=0)
    top1_agreed: int = Field(ge=0)
    top3_contained: int = Field(ge=0)


class Quantization(_Frozen):
    """How an INT8 pack was made."""

    recipe: str = Field(min_length=1, max_length=100)
    source_digest: Digest = Field(description="of the FP32 pack")
    calibration_digest: Digest | None = Field(description="of the calibration set; none for a dynamic recipe")
    calibration_images: int = Field(ge=0)
    calibration_groups: tuple[str, ...] = Field(
        max_length=100_000, description="groups of the calibration set: a check leaves their images out"
    )
    calibration_method: str | None = Field(
        None, max_length=100, description="how ranges were taken from the images; none for a dynamic recipe"
    )
    float_layers: tuple[Annotated[str, Field(max_length=500)], ...] = Field(
        (), max_length=10_000, description="layers left in FP32, the most sensitive first where that was measured"
    )
    cpu_model: str = Field(max_length=200)
    cpu_features: tuple[str, ...] = Field(max_length=100, description="of the machine that quantised")
    agreement: Agreement | None = Field(description="measured on the photos it was chosen by; none if not measured")


class Manifest(_Frozen):
    """Everything a pack says about itself."""

    format: Literal[1]
    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,98}[a-z0-9])?$")
    precision: Precision
    architecture: str = Field(min_length=1, max_length=100)
    source: Source
    preprocess: Preprocess
    quantization: Quantization | None
    requires_cpu: tuple[Annotated[str, Field(min_length=1, max_length=50)], ...] = Field(
        max_length=20,
        description="CPU features without which the model must not run; an unknown name counts as missing",
    )
    created_with: dict[str, str] = Field(description="versions of what made the pack")


def parse_manifest(data: bytes) -> Manifest:
    """Read ``pack.json``. Raises ``PackError`` naming the first field that is wrong."""
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise PackError(f"pack.json is not valid: {where}: {first['msg']}") from error


def render_manifest(manifest: Manifest) -> bytes:
    """Write ``pack.json``: indented for people, and the same bytes for the same manifest."""
    return manifest.model_dump_json(indent=1).encode() + b"\n"
