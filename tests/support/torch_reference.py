"""Computes what PyTorch computes. Run by the machine's own Python, whose torch and torchvision are Debian's packages.

torch_reference.py about
    Print torchvision's evaluation transforms of published weights, as JSON.
torch_reference.py torchvision MODEL SEED DIR
    Make MODEL with seeded random weights; write DIR/legacy.pth and DIR/zip.pth, and the logits of DIR/images.npy
    (uint8 NHWC) to DIR/logits-BATCH.npy.
torch_reference.py lite0 CHECKPOINT DIR
    Write the same logits of EfficientNet-Lite0, whose forward pass is below.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from torchvision import models

BATCHES = {1: 4, 2: 4, 8: 16, 32: 32}
"""Sizes of batches, and how many images go through in batches of that size: all of them at 32 only, for time."""

MEAN = torch.tensor([0.485, 0.456, 0.406]).reshape(1, 3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).reshape(1, 3, 1, 1)


def about():
    """Return, by file name, what torchvision does to a photo before weights of that name see it."""
    found = {}
    for weights in (*models.MobileNet_V2_Weights, *models.MobileNet_V3_Large_Weights):
        transform = weights.transforms()
        found[weights.url.rpartition("/")[2]] = {
            "resize": transform.resize_size[0],
            "crop": transform.crop_size[0],
            "interpolation": transform.interpolation.value,
            "mean": list(transform.mean),
            "std": list(transform.std),
        }
    return found


def random_model(name, seed, images):
    """Return torchvision's own module with random weights, and normalisation by statistics of the images."""
    torch.manual_seed(seed)
    model = getattr(models, name)(weights=None)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.normal_(module.bias, 0, 0.2)
            module.momentum = None  # the plain mean over all batches seen
        elif isinstance(module, torch.nn.Linear | torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight)
            if module.bias is not None:
                torch.nn.init.normal_(module.bias, 0, 0.2)
    model.train()
    model((images[:8] / 255 - MEAN) / STD)
    model.eval()
    # Most of what all images have in common is taken off the logits, else all would get one label.
    model.classifier[-1].bias -= 0.8 * model((images / 255 - MEAN) / STD).mean(0)
    return model


def lite0(tensors, x):
    """EfficientNet-Lite0 from its description: arXiv:1905.11946, table 1, without squeeze-and-excite, with ReLU6.

    Every convolution is padded as TensorFlow pads, followed by batch normalisation, and by ReLU6 but for projections.
    """

    def convolve(x, conv, norm, stride=1, groups=1, relu6=True):
        weight = tensors[f"{conv}.weight"]
        kernel, size = weight.shape[-1], x.shape[-1]
        wanted = -(-size // stride)
        extra = max((wanted - 1) * stride + kernel - size, 0)
        sides = (extra // 2, extra - extra // 2)
        x = functional.conv2d(functional.pad(x, sides + sides), weight, stride=stride, groups=groups)
        statistics = [tensors[f"{norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        x = functional.batch_norm(x, *statistics, eps=1e-3)
        return functional.relu6(x) if relu6 else x

    x = convolve((x - 127) / 128, "_conv_stem", "_bn0", stride=2)
    block = 0
    for repeats, stride, expand in ((1, 1, 1), (2, 2, 6), (2, 2, 6), (3, 2, 6), (3, 1, 6), (4, 2, 6), (1, 1, 6)):
        for step in (stride, *[1] * (repeats - 1)):
            name, before = f"_blocks.{block}", x
            if expand > 1:
                x = convolve(x, f"{name}._expand_conv", f"{name}._bn0")
            x = convolve(x, f"{name}._depthwise_conv", f"{name}._bn1", step, groups=x.shape[1])
            x = convolve(x, f"{name}._project_conv", f"{name}._bn2", relu6=False)
            x = x + before if x.shape == before.shape else x
            block += 1
    x = convolve(x, "_conv_head", "_bn1")
    return functional.linear(x.mean((2, 3)), tensors["_fc.weight"], tensors["_fc.bias"])


def write_logits(folder, images, forward):
    """Write the logits of the first images, batch size by batch size."""
    for size, count in BATCHES.items():
        parts = [forward(images[start : start + size]) for start in range(0, count, size)]
        np.save(folder / f"logits-{size}.npy", torch.cat(parts).numpy())


def main(command, *arguments):
    if command == "about":
        print(json.dumps(about()))
        return
    folder = Path(arguments[-1])
    images = torch.from_numpy(np.load(folder / "images.npy")).permute(0, 3, 1, 2).float()
    if command == "lite0":
        tensors = torch.load(arguments[0], map_location="cpu")
        write_logits(folder, images, lambda x: lite0(tensors, x))
        return
    name, seed = arguments[0], int(arguments[1])
    model = random_model(name, seed, images)
    torch.save(model.state_dict(), folder / "zip.pth")
    torch.save(model.state_dict(), folder / "legacy.pth", _use_new_zipfile_serialization=False)
    write_logits(folder, images, lambda x: model((x / 255 - MEAN) / STD))


if __name__ == "__main__":
    with torch.no_grad():
        main(*sys.argv[1:])
