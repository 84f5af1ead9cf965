"""How convolutions pad: TensorFlow's way and PyTorch's, which differ where a stride meets an even size."""

from collections.abc import Callable

Padding = Callable[[int, int, int], tuple[int, int]]
"""From size, kernel and stride of an axis to the padding before and after it."""


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return TensorFlow's 'same' padding before and after one axis: the odd pixel goes after.

    Source: the TensorFlow documentation of ``tf.nn.convolution``, "SAME padding".
    """
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def centred_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return PyTorch's usual padding: half an odd kernel on either side, whatever the size and the stride."""
    del size, stride
    return (kernel - 1) // 2, (kernel - 1) // 2
