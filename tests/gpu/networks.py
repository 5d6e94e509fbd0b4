"""The service's networks as lists of layers, for the frameworks it is compared with. core/domain/builtin_networks.cc has
the originals."""

DIGITS, COLOURS = (1, 28, 28), (3, 32, 32)


def _conv(channels, kernel, stride=1, bias=False, padding=None):
    return ("conv", channels, kernel, stride, kernel // 2 if padding is None else padding, bias)


NORM, RELU, POOL, FLATTEN, MEAN = ("norm",), ("relu",), ("pool",), ("flatten",), ("mean",)
FRN, LINEAR_FRN = ("frn", True), ("frn", False)


def _linear(outputs):
    return ("linear", outputs)


def _resnet18():
    layers, inputs = [_conv(64, 3), NORM, RELU], 64
    for channels in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and channels > 64 else 1
            branch = [_conv(channels, 3, stride), NORM, RELU, _conv(channels, 3), NORM]
            shortcut = [_conv(channels, 1, stride), NORM] if inputs != channels else []
            layers += [("residual", branch, shortcut), RELU]
            inputs = channels
    return layers + [MEAN, _linear(10)]


def _resnet20_frn():
    layers, inputs = [_conv(16, 3), FRN], 16
    for channels in (16, 32, 64):
        for block in range(3):
            stride = 2 if block == 0 and channels > 16 else 1
            branch = [_conv(channels, 3, stride), FRN, _conv(channels, 3), LINEAR_FRN]
            shortcut = [_conv(channels, 1, stride), LINEAR_FRN] if inputs != channels else []
            layers += [("residual", branch, shortcut), RELU]
            inputs = channels
    return layers + [MEAN, _linear(10)]


def _preresnet164():
    layers = [_conv(16, 3)]
    for channels in (16, 32, 64):
        for block in range(18):
            stride = 2 if block == 0 and channels > 16 else 1
            branch = [NORM, RELU, _conv(channels, 1), NORM, RELU, _conv(channels, 3, stride), NORM, RELU, _conv(4 * channels, 1)]
            layers.append(("residual", branch, [_conv(4 * channels, 1, stride)] if block == 0 else []))
    return layers + [NORM, RELU, MEAN, _linear(10)]


def _vgg16():
    layers = []
    for channels, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        layers += count * [_conv(channels, 3, bias=True), RELU] + [POOL]
    return layers + [FLATTEN, _linear(512), RELU, _linear(512), RELU, _linear(10)]


NETWORKS = {
    "mlp": (DIGITS, [FLATTEN, _linear(200), RELU, _linear(200), RELU, _linear(10)]),
    "lenet5": (DIGITS, [_conv(6, 5, bias=True), RELU, POOL, _conv(16, 5, bias=True, padding=0), RELU, POOL, FLATTEN,
                        _linear(120), RELU, _linear(84), RELU, _linear(10)]),
    "resnet20-frn": (COLOURS, _resnet20_frn()),
    "resnet18": (COLOURS, _resnet18()),
    "vgg16": (COLOURS, _vgg16()),
    "preresnet164": (COLOURS, _preresnet164()),
}


def walk(layers, shape, visit):
    """Calls visit(layer, shape of its input) for each layer but blocks; returns the shape of the output."""
    for layer in layers:
        kind = layer[0]
        if kind == "residual":
            _, branch, shortcut = layer
            walk(shortcut, shape, visit)
            shape = walk(branch, shape, visit)
            continue
        visit(layer, shape)
        if kind == "conv":
            _, channels, kernel, stride, padding, _ = layer
            shape = (channels, *((extent + 2 * padding - kernel) // stride + 1 for extent in shape[1:]))
        elif kind == "pool":
            shape = (shape[0], shape[1] // 2, shape[2] // 2)
        elif kind == "flatten":
            shape = (shape[0] * shape[1] * shape[2],)
        elif kind == "mean":
            shape = shape[:1]
        elif kind == "linear":
            shape = (layer[1],)
    return shape


def parameter_shapes(name):
    """In the order in which `forward` takes them."""
    shapes = []

    def visit(layer, shape):
        if layer[0] == "conv":
            shapes.append((layer[1], shape[0], layer[2], layer[2]))
            if layer[5]:
                shapes.append((layer[1],))
        elif layer[0] == "linear":
            shapes.extend([(layer[1], shape[0]), (layer[1],)])
        elif layer[0] in ("norm", "frn"):
            shapes.extend((3 if layer == FRN else 2) * [(shape[0],)])

    walk(NETWORKS[name][1], NETWORKS[name][0], visit)
    return shapes


def convolutions(name):
    """{(layer, shape of its input): how many the network has}, in their order."""
    found = {}

    def visit(layer, shape):
        if layer[0] == "conv":
            found[layer, shape] = found.get((layer, shape), 0) + 1

    walk(NETWORKS[name][1], NETWORKS[name][0], visit)
    return found


def forward(layers, parameters, x, ops):
    """The output for one chain. `parameters` is an iterator; `ops` has the layers of a framework."""
    for layer in layers:
        kind = layer[0]
        if kind == "conv":
            _, _, _, stride, padding, bias = layer
            x = ops.conv(x, next(parameters), next(parameters) if bias else None, stride, padding)
        elif kind == "linear":
            x = ops.linear(x, next(parameters), next(parameters))
        elif kind == "norm":
            x = ops.norm(x, next(parameters), next(parameters))
        elif kind == "frn":
            x = ops.frn(x, next(parameters), next(parameters), next(parameters) if layer[1] else None)
        elif kind == "residual":
            shortcut = forward(layer[2], parameters, x, ops)
            x = forward(layer[1], parameters, x, ops) + shortcut
        else:
            x = getattr(ops, kind)(x)
    return x
