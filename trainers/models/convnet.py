"""A small convolutional network with batch norm, for images of any size from 8 × 8 on."""

from torch import Tensor, nn


class ConvNet(nn.Module):
    """Maps images (batch, channels, height, width) to logits (batch, classes).

    size: (height, width) in pixels; any will do, the mean over positions comes last.
    width: channels of the first stage; each of the two later stages halves the image and doubles them.
    """

    def __init__(self, channels: int, size: tuple[int, int], classes: int, width: int = 16) -> None:
        super().__init__()
        if min(size) < 4:
            raise ValueError(f"The images are {size[0]} × {size[1]} pixels; ConvNet halves them twice and needs 4 × 4.")
        self.stages = nn.Sequential(
            _convolution(channels, width),
            _convolution(width, 2 * width),
            nn.MaxPool2d(2),
            _convolution(2 * width, 4 * width),
            nn.MaxPool2d(2),
        )
        self.output = nn.Linear(4 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.output(self.stages(images).mean(dim=(2, 3)))
        return logits


def _convolution(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )
