"""The protocol's JSON messages: they check what comes in, and describe both ways in the reference."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Parameters = dict[str, bool | int | float | str]
"""The protocol's ``parameters``; what is not named in this module is ignored, as the protocol asks."""

Size = Annotated[int, Field(ge=0, le=1 << 40)]


class RequestParameters(BaseModel):
    """Parameters of a request that mean something here."""

    model_config = ConfigDict(extra="allow")

    top_k: int | None = Field(default=None, ge=1, le=1000, strict=True)
    """Labels wanted for each image, best first."""

    binary_data_output: bool = False
    """Whether outputs that are not named under ``outputs`` come as binary data."""


class TensorParameters(BaseModel):
    """Parameters of an input that mean something here."""

    model_config = ConfigDict(extra="allow")

    binary_data_size: Size | None = Field(default=None, strict=True)
    """Bytes of this tensor behind the JSON part of the body; there is no ``data`` then."""

    shared_memory_region: str | None = None


class OutputParameters(BaseModel):
    """Parameters of an output that mean something here."""

    model_config = ConfigDict(extra="allow")

    binary_data: bool | None = None
    """Whether this output comes as binary data; by default, what the request says."""

    classification: int | None = None
    shared_memory_region: str | None = None


class InputTensor(BaseModel):
    """One input: ``images`` (UINT8 ``[N, crop, crop, 3]``) or ``encoded`` (BYTES ``[N]``)."""

    name: Literal["images", "encoded"]
    shape: Annotated[list[Annotated[int, Field(strict=True, ge=0, le=1 << 31)]], Field(max_length=8)]
    datatype: Literal["UINT8", "BYTES"]
    parameters: TensorParameters = TensorParameters()
    data: list[Any] | None = None
    """Numbers, flat or nested as ``shape`` says; for BYTES, the files' bytes as base64 texts."""


class RequestedOutput(BaseModel):
    """One output that is wanted."""

    name: Literal["scores", "labels", "indices"]
    parameters: OutputParameters = OutputParameters()


class InferenceRequest(BaseModel):
    """An inference request."""

    id: str = Field(default="", max_length=256)
    parameters: RequestParameters = RequestParameters()
    inputs: Annotated[list[InputTensor], Field(min_length=1, max_length=1)]
    outputs: Annotated[list[RequestedOutput], Field(max_length=8)] = []


class OutputTensor(BaseModel):
    """One output: ``scores`` (FP32), ``labels`` (BYTES) or ``indices`` (INT32), each ``[N, top_k]``, best first."""

    name: Literal["scores", "labels", "indices"]
    datatype: Literal["FP32", "BYTES", "INT32"]
    shape: list[int]
    data: list[float | str] | None = None
    parameters: Parameters | None = None


class InferenceResponse(BaseModel):
    """An inference response."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[OutputTensor]


class ServerMetadata(BaseModel):
    """What serves here."""

    name: str
    version: str
    extensions: list[str]


class TensorMetadata(BaseModel):
    """A tensor's name, type and shape; -1 stands for any size."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(BaseModel):
    """The model. ``versions`` has one element, the digest of its pack."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class Live(BaseModel):
    """Whether the process lives."""

    live: bool


class Ready(BaseModel):
    """Whether it takes traffic."""

    ready: bool


class ModelReady(Ready):
    """Whether a model takes traffic."""

    name: str
