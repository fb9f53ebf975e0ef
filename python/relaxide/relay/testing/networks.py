"""Classifiers and generators of images, by the papers that describe them.

Each ``get_workload`` gives a module and weights. Sizes may be smaller than the papers', for tests that run often.
"""

from .. import op
from .builder import Builder

nn = op.nn


def mlp(batch_size=1, num_classes=10, image_shape=(1, 28, 28), dtype="float32"):
    """Three dense layers."""
    net = Builder(dtype)
    size = image_shape[0] * image_shape[1] * image_shape[2]
    x = nn.batch_flatten(net.input("data", (batch_size, *image_shape)))
    x = nn.relu(net.dense(x, "fc1", size, 128))
    x = nn.relu(net.dense(x, "fc2", 128, 64))
    return net.workload(nn.softmax(net.dense(x, "fc3", 64, num_classes)))


def _residual_unit(net, x, name, cin, cout, stride, bottle_neck):
    """Pre-activation unit (He et al., 2016): normalize, activate, convolve, and add what came in."""
    act = nn.relu(net.batch_norm(x, f"{name}_bn1", cin, 2e-5))
    if bottle_neck:
        inner = cout // 4
        y = net.conv(act, f"{name}_conv1", cin, inner, 1)
        y = nn.relu(net.batch_norm(y, f"{name}_bn2", inner, 2e-5))
        y = net.conv(y, f"{name}_conv2", inner, inner, 3, stride, 1)
        y = nn.relu(net.batch_norm(y, f"{name}_bn3", inner, 2e-5))
        y = net.conv(y, f"{name}_conv3", inner, cout, 1)
    else:
        y = net.conv(act, f"{name}_conv1", cin, cout, 3, stride, 1)
        y = nn.relu(net.batch_norm(y, f"{name}_bn2", cout, 2e-5))
        y = net.conv(y, f"{name}_conv2", cout, cout, 3, 1, 1)
    same = cin == cout and stride == 1
    return y + (x if same else net.conv(act, f"{name}_sc", cin, cout, 1, stride))


_RESNETS = {18: ([2, 2, 2, 2], False), 34: ([3, 4, 6, 3], False), 50: ([3, 4, 6, 3], True), 101: ([3, 4, 23, 3], True)}


def resnet(batch_size=1, num_classes=1000, num_layers=18, image_shape=(3, 224, 224), dtype="float32", width=64):
    """Residual network of 18, 34, 50 or 101 layers."""
    if num_layers not in _RESNETS:
        raise ValueError(f"no experiments done on num_layers {num_layers}; there are {', '.join(map(str, _RESNETS))}")
    units, bottle_neck = _RESNETS[num_layers]
    net = Builder(dtype)
    x = net.input("data", (batch_size, *image_shape))
    x = net.batch_norm(x, "bn_data", image_shape[0], 2e-5, scale=False)
    small = image_shape[1] <= 32
    x = net.conv(x, "conv0", image_shape[0], width, 3 if small else 7, 1 if small else 2, 1 if small else 3)
    if not small:
        x = nn.relu(net.batch_norm(x, "bn0", width, 2e-5))
        x = nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    channels = width
    for stage, count in enumerate(units):
        cout = width * 2**stage * (4 if bottle_neck else 1)
        for unit in range(count):
            stride = 2 if stage and not unit else 1
            x = _residual_unit(net, x, f"stage{stage + 1}_unit{unit + 1}", channels, cout, stride, bottle_neck)
            channels = cout
    x = nn.relu(net.batch_norm(x, "bn1", channels, 2e-5))
    x = nn.batch_flatten(nn.global_avg_pool2d(x))
    return net.workload(nn.softmax(net.dense(x, "fc1", channels, num_classes)))


def mobilenet(batch_size=1, num_classes=1000, image_shape=(3, 224, 224), dtype="float32", multiplier=1.0):
    """MobileNet of depth-wise separable convolutions (Howard et al., 2017)."""
    net = Builder(dtype)
    wide = lambda channels: int(channels * multiplier)
    x = net.input("data", (batch_size, *image_shape))
    channels = wide(32)
    x = net.conv_bn_relu(x, "conv_block_1", image_shape[0], channels, 3, 2, 1)
    plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for at, (cout, stride) in enumerate(plan, 1):
        cout = wide(cout)
        x = net.conv_bn_relu(x, f"separable_conv_block_{at}_depthwise", channels, channels, 3, stride, 1, groups=channels)
        x = net.conv_bn_relu(x, f"separable_conv_block_{at}_pointwise", channels, cout, 1)
        channels = cout
    x = nn.batch_flatten(nn.global_avg_pool2d(x))
    return net.workload(nn.softmax(net.dense(x, "fc", channels, num_classes)))


def squeezenet(batch_size=1, num_classes=1000, image_shape=(3, 224, 224), dtype="float32", version="1.0"):
    """SqueezeNet of fire modules (Iandola et al., 2016)."""
    net = Builder(dtype)
    relu_conv = lambda x, *args, **attrs: nn.relu(net.conv(x, *args, bias=True, **attrs))

    def fire(x, name, cin, squeeze, expand):
        x = relu_conv(x, f"{name}_squeeze", cin, squeeze, 1)
        left = relu_conv(x, f"{name}_left", squeeze, expand, 1)
        right = relu_conv(x, f"{name}_right", squeeze, expand, 3, padding=1)
        return op.concatenate((left, right), axis=1)

    pool = lambda x: nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2))
    x = net.input("data", (batch_size, *image_shape))
    if version == "1.0":
        x = pool(relu_conv(x, "conv0", image_shape[0], 96, 7, strides=2))
        plan, channels = [16, 16, 32, "pool", 32, 48, 48, 64, "pool", 64], 96
    elif version == "1.1":
        x = pool(relu_conv(x, "conv0", image_shape[0], 64, 3, strides=2))
        plan, channels = [16, 16, "pool", 32, 32, "pool", 48, 48, 64, 64], 64
    else:
        raise ValueError(f"SqueezeNet has the versions 1.0 and 1.1, not {version}")
    for at, squeeze in enumerate(plan):
        if squeeze == "pool":
            x = pool(x)
        else:
            x = fire(x, f"fire{at}", channels, squeeze, squeeze * 4)
            channels = squeeze * 8
    x = relu_conv(nn.dropout(x, rate=0.5), "conv1", channels, num_classes, 1)
    return net.workload(nn.softmax(nn.batch_flatten(nn.global_avg_pool2d(x))))


_VGGS = {11: [1, 1, 2, 2, 2], 13: [2, 2, 2, 2, 2], 16: [2, 2, 3, 3, 3], 19: [2, 2, 4, 4, 4]}


def vgg(
    batch_size=1,
    num_classes=1000,
    image_shape=(3, 224, 224),
    dtype="float32",
    num_layers=11,
    batch_norm=False,
    width=64,
    hidden=4096,
):
    """VGG of 11, 13, 16 or 19 layers (Simonyan and Zisserman, 2014)."""
    if num_layers not in _VGGS:
        raise ValueError(f"Invalid num_layers {num_layers}; choices are {', '.join(map(str, _VGGS))}")
    net = Builder(dtype)
    x, channels, side = net.input("data", (batch_size, *image_shape)), image_shape[0], image_shape[1]
    for stage, count in enumerate(_VGGS[num_layers]):
        cout = width * min(2**stage, 8)
        for at in range(count):
            x = net.conv(x, f"conv{stage + 1}_{at + 1}", channels, cout, 3, padding=1, bias=True)
            if batch_norm:
                x = net.batch_norm(x, f"bn{stage + 1}_{at + 1}", cout)
            x, channels = nn.relu(x), cout
        x, side = nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2)), side // 2
    x = nn.batch_flatten(x)
    x = nn.dropout(nn.relu(net.dense(x, "fc6", channels * side * side, hidden)))
    x = nn.dropout(nn.relu(net.dense(x, "fc7", hidden, hidden)))
    return net.workload(nn.softmax(net.dense(x, "fc8", hidden, num_classes)))


_DENSENETS = {
    121: (64, 32, [6, 12, 24, 16]),
    161: (96, 48, [6, 12, 36, 24]),
    169: (64, 32, [6, 12, 32, 32]),
    201: (64, 32, [6, 12, 48, 32]),
}


def densenet(
    densenet_size=121, classes=1000, batch_size=1, image_shape=(3, 224, 224), dtype="float32", blocks=None, growth=None
):
    """DenseNet (Huang et al., 2016): every layer sees what all before it gave."""
    channels, own_growth, own_blocks = _DENSENETS[densenet_size]
    growth, blocks = growth or own_growth, blocks or own_blocks
    net = Builder(dtype)

    def activated(x, name, channels):
        return nn.relu(net.batch_norm(x, name, channels))

    x = net.conv(net.input("data", (batch_size, *image_shape)), "conv1", image_shape[0], channels, 7, 2, 3)
    x = nn.max_pool2d(activated(x, "batch1", channels), pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    for at, layers in enumerate(blocks):
        for layer in range(layers):
            name = f"dense{at}_{layer}"
            y = net.conv(activated(x, f"{name}_bn1", channels), f"{name}_conv1", channels, 4 * growth, 1)
            y = net.conv(activated(y, f"{name}_bn2", 4 * growth), f"{name}_conv2", 4 * growth, growth, 3, padding=1)
            x, channels = op.concatenate((x, y), axis=1), channels + growth
        if at + 1 < len(blocks):
            x = net.conv(activated(x, f"tr{at}_bn", channels), f"tr{at}_conv", channels, channels // 2, 1)
            x, channels = nn.avg_pool2d(x, pool_size=(2, 2), strides=(2, 2)), channels // 2
    x = nn.batch_flatten(nn.global_avg_pool2d(activated(x, "batch5", channels)))
    return net.workload(net.dense(x, "dense1", channels, classes))


def dcgan(batch_size=1, oshape=(3, 64, 64), ngf=128, random_len=100, dtype="float32"):
    """The generator of DCGAN (Radford et al., 2015), which makes images of 64 by 64 of noise."""
    if oshape[-1] != 64 or oshape[-2] != 64:
        raise ValueError("the generator makes images of 64 by 64")
    net = Builder(dtype)
    x = net.dense(net.input("data", (batch_size, random_len)), "g1", random_len, 4 * 4 * ngf * 8, bias=False)
    x = op.reshape(nn.relu(x), newshape=(-1, ngf * 8, 4, 4))
    channels = ngf * 8
    for name, cout in (("g2", ngf * 4), ("g3", ngf * 2), ("g4", ngf)):
        x = net.conv(x, f"{name}_deconv", channels, cout, 4, 2, 1, transposed=True)
        x, channels = nn.relu(net.batch_norm(x, f"{name}_bn", cout, 1e-5 + 1e-12)), cout
    x = net.conv(x, "g5_deconv", channels, oshape[0], 4, 2, 1, transposed=True)
    return net.workload(op.tanh(x))


def inception_v3(batch_size=1, num_classes=1000, image_shape=(3, 299, 299), dtype="float32", width=1.0):
    """Inception-v3 (Szegedy et al., 2015)."""
    net = Builder(dtype)
    wide = lambda channels: max(int(channels * width), 1)

    def conv(x, name, cin, cout, kernel=(1, 1), strides=1, padding=(0, 0)):
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        return net.conv_bn_relu(x, name, cin, cout, kernel, strides, padding, epsilon=2e-5)

    average = lambda x: nn.avg_pool2d(x, (3, 3), (1, 1), padding=(1, 1), count_include_pad=True)
    largest = lambda x, strides=(2, 2), padding=(0, 0): nn.max_pool2d(x, (3, 3), strides, padding=padding)
    join = lambda *parts: op.concatenate(parts, axis=1)

    def a(x, name, cin, pooled):
        c = [wide(n) for n in (64, 48, 64, 64, 96, pooled)]
        one = conv(x, f"{name}_1x1", cin, c[0])
        five = conv(conv(x, f"{name}_5x5_r", cin, c[1]), f"{name}_5x5", c[1], c[2], 5, padding=(2, 2))
        three = conv(conv(x, f"{name}_3x3_r", cin, c[3]), f"{name}_3x3_0", c[3], c[4], 3, padding=(1, 1))
        three = conv(three, f"{name}_3x3_1", c[4], c[4], 3, padding=(1, 1))
        return join(one, five, three, conv(average(x), f"{name}_proj", cin, c[5])), c[0] + c[2] + c[4] + c[5]

    def b(x, name, cin):
        c = [wide(n) for n in (384, 64, 96)]
        three = conv(x, f"{name}_3x3", cin, c[0], 3, 2)
        double = conv(conv(x, f"{name}_d_r", cin, c[1]), f"{name}_d_0", c[1], c[2], 3, padding=(1, 1))
        return join(three, conv(double, f"{name}_d_1", c[2], c[2], 3, 2), largest(x)), c[0] + c[2] + cin

    def c(x, name, cin, inner):
        n, o = wide(inner), wide(192)
        one = conv(x, f"{name}_1x1", cin, o)
        seven = conv(conv(x, f"{name}_7_r", cin, n), f"{name}_7_0", n, n, (1, 7), padding=(0, 3))
        seven = conv(seven, f"{name}_7_1", n, o, (7, 1), padding=(3, 0))
        long = conv(conv(x, f"{name}_q_r", cin, n), f"{name}_q_0", n, n, (7, 1), padding=(3, 0))
        long = conv(long, f"{name}_q_1", n, n, (1, 7), padding=(0, 3))
        long = conv(long, f"{name}_q_2", n, n, (7, 1), padding=(3, 0))
        long = conv(long, f"{name}_q_3", n, o, (1, 7), padding=(0, 3))
        return join(one, seven, long, conv(average(x), f"{name}_proj", cin, o)), 4 * o

    def d(x, name, cin):
        n, o = wide(192), wide(320)
        three = conv(conv(x, f"{name}_3_r", cin, n), f"{name}_3", n, o, 3, 2)
        seven = conv(conv(x, f"{name}_7_r", cin, n), f"{name}_7_0", n, n, (1, 7), padding=(0, 3))
        seven = conv(conv(seven, f"{name}_7_1", n, n, (7, 1), padding=(3, 0)), f"{name}_7_2", n, n, 3, 2)
        return join(three, seven, largest(x)), n + o + cin

    def e(x, name, cin, pool):
        one, n, m = wide(320), wide(384), wide(448)
        first = conv(x, f"{name}_1x1", cin, one)
        y = conv(x, f"{name}_d3_r", cin, n)
        left = conv(y, f"{name}_d3_a", n, n, (1, 3), padding=(0, 1))
        right = conv(y, f"{name}_d3_b", n, n, (3, 1), padding=(1, 0))
        z = conv(conv(x, f"{name}_q_r", cin, m), f"{name}_q", m, n, 3, padding=(1, 1))
        low = conv(z, f"{name}_q_a", n, n, (1, 3), padding=(0, 1))
        high = conv(z, f"{name}_q_b", n, n, (3, 1), padding=(1, 0))
        pooled = average(x) if pool == "avg" else largest(x, (1, 1), (1, 1))
        last = conv(pooled, f"{name}_proj", cin, wide(192))
        return join(first, left, right, low, high, last), one + 4 * n + wide(192)

    s = [wide(n) for n in (32, 32, 64, 80, 192)]
    x = conv(net.input("data", (batch_size, *image_shape)), "conv", image_shape[0], s[0], 3, 2)
    x = conv(conv(x, "conv_1", s[0], s[1], 3), "conv_2", s[1], s[2], 3, padding=(1, 1))
    x = conv(conv(largest(x), "conv_3", s[2], s[3]), "conv_4", s[3], s[4], 3)
    x, channels = largest(x), s[4]
    for at, pooled in enumerate((32, 64, 64)):
        x, channels = a(x, f"mixed_{at}", channels, pooled)
    x, channels = b(x, "mixed_3", channels)
    for at, inner in enumerate((128, 160, 160, 192), 4):
        x, channels = c(x, f"mixed_{at}", channels, inner)
    x, channels = d(x, "mixed_8", channels)
    for at, pool in ((9, "avg"), (10, "max")):
        x, channels = e(x, f"mixed_{at}", channels, pool)
    x = nn.batch_flatten(nn.global_avg_pool2d(x))
    return net.workload(nn.softmax(net.dense(x, "fc1", channels, num_classes)))
