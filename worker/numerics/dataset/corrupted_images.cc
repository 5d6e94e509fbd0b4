#include "worker/numerics/dataset/corrupted_images.h"

#include <algorithm>
#include <cmath>

#include "core/domain/fields.h"
#include "worker/numerics/dataset/blur_kernel.h"

namespace chainfleet {
namespace {

constexpr double kPi = 3.141592653589793;

// The random numbers of one row under one corruption, by position.
struct RowNumbers {
  RngKey key;
  uint64_t step;

  PhiloxBlock Block(int64_t i) const {
    return RandomBlock(key, RngStream::kAugmentation, step, static_cast<uint32_t>(i));
  }
  double Uniform(int64_t i) const {
    const PhiloxBlock block = Block(i);
    return UniformDouble(block.word[0], block.word[1]);
  }
  double Normal(int64_t i) const { return NormalDouble(key, RngStream::kAugmentation, step, static_cast<uint32_t>(i)); }
};

// One image, and the inputs of its corruption.
struct Image {
  int64_t channels, height, width;
  float* values;
  int32_t severity;
  RowNumbers numbers;

  int64_t plane_size() const { return height * width; }
  float* plane(int64_t c) const { return values + c * plane_size(); }
  // Severity times the shorter side.
  double length() const { return static_cast<double>(severity * std::min(height, width)); }
  double Level(const double (&levels)[5]) const { return levels[severity - 1]; }
};

// Replaces every value x by `of(x, position)`.
template <typename Of>
void ForEachValue(const Image& image, const Of& of) {
  for (int64_t i = 0; i < image.channels * image.plane_size(); ++i) {
    image.values[i] = static_cast<float>(of(static_cast<double>(image.values[i]), i));
  }
}

void GaussianNoise(const Image& image) {
  const double sigma = image.Level({.08, .12, .18, .26, .38});
  ForEachValue(image, [&](double x, int64_t i) { return x + sigma * image.numbers.Normal(i); });
}

// Inversion: the first count at which the distribution function reaches `uniform`. Rates are at most 60 here, so
// exp(-rate) does not underflow; the bound is 30 standard deviations.
double Poisson(double rate, double uniform) {
  double term = std::exp(-rate), sum = term, count = 0;
  while (sum < uniform && count < 300) {
    term *= rate / ++count;
    sum += term;
  }
  return count;
}

void ShotNoise(const Image& image) {
  const double scale = image.Level({60, 25, 12, 5, 3});
  ForEachValue(image, [&](double x, int64_t i) {
    return std::isnan(x) ? x : Poisson(scale * std::clamp(x, 0.0, 1.0), image.numbers.Uniform(i)) / scale;
  });
}

void ImpulseNoise(const Image& image) {
  const double share = image.Level({.03, .06, .09, .17, .27});
  ForEachValue(image, [&](double x, int64_t i) {
    const double uniform = image.numbers.Uniform(i);
    return uniform < share / 2 ? 0.0 : uniform < share ? 1.0 : x;
  });
}

void SpeckleNoise(const Image& image) {
  const double sigma = image.Level({.15, .2, .35, .45, .6});
  ForEachValue(image, [&](double x, int64_t i) { return x + sigma * x * image.numbers.Normal(i); });
}

void BlurPlanes(const Image& image, const BlurKernel& kernel) {
  for (int64_t c = 0; c < image.channels; ++c) Blur(kernel, image.height, image.width, image.plane(c));
}

void Brightness(const Image& image) {
  const double more = image.severity / 10.0;
  ForEachValue(image, [more](double x, int64_t) { return x + more; });
}

void Contrast(const Image& image) {
  const double left = image.Level({.4, .3, .2, .1, .05});
  for (int64_t c = 0; c < image.channels; ++c) {
    float* plane = image.plane(c);
    double sum = 0;
    for (int64_t i = 0; i < image.plane_size(); ++i) sum += plane[i];
    const double mean = sum / static_cast<double>(image.plane_size());
    for (int64_t i = 0; i < image.plane_size(); ++i) plane[i] = static_cast<float>(mean + left * (plane[i] - mean));
  }
}

// Smooth noise [height, width], scaled to reach both 0 and 1: uniform values on lattices of 2, 4, 8 and 16 cells, each
// half as strong as the one before, interpolated by 3 t^2 - 2 t^3.
std::vector<double> SmoothNoise(const Image& image) {
  std::vector<double> field(image.plane_size());
  int64_t first = 0;  // index of the next random number
  double strength = 1;
  for (int64_t cells = 2; cells <= 16; cells *= 2, strength /= 2) {
    std::vector<double> lattice((cells + 1) * (cells + 1));
    for (double& value : lattice) value = image.numbers.Uniform(first++);
    const auto at = [&](int64_t row, int64_t column) { return lattice[row * (cells + 1) + column]; };
    for (int64_t y = 0; y < image.height; ++y) {
      const double down =
          (static_cast<double>(y) + 0.5) / static_cast<double>(image.height) * static_cast<double>(cells);
      const auto row = static_cast<int64_t>(down);
      const double v = down - static_cast<double>(row), below = v * v * (3 - 2 * v);
      for (int64_t x = 0; x < image.width; ++x) {
        const double right =
            (static_cast<double>(x) + 0.5) / static_cast<double>(image.width) * static_cast<double>(cells);
        const auto column = static_cast<int64_t>(right);
        const double u = right - static_cast<double>(column), beyond = u * u * (3 - 2 * u);
        const double top = (1 - beyond) * at(row, column) + beyond * at(row, column + 1);
        const double bottom = (1 - beyond) * at(row + 1, column) + beyond * at(row + 1, column + 1);
        field[y * image.width + x] += strength * ((1 - below) * top + below * bottom);
      }
    }
  }
  const auto [least, most] = std::minmax_element(field.begin(), field.end());
  const double low = *least, range = *most - *least;
  for (double& value : field) value = (value - low) / range;
  return field;
}

void Fog(const Image& image) {
  const double density = image.Level({.3, .45, .6, .75, .9});
  const std::vector<double> field = SmoothNoise(image);
  ForEachValue(image, [&](double x, int64_t i) { return x + density * field[i % image.plane_size()] * (1 - x); });
}

// The mean of `line` over [begin, end); pixels, `stride` apart, are weighted by their share of the interval.
double MeanOver(const double* line, int64_t stride, double begin, double end) {
  double sum = 0;
  for (auto i = static_cast<int64_t>(begin); static_cast<double>(i) < end; ++i) {
    const auto pixel = static_cast<double>(i);
    sum += (std::min(end, pixel + 1) - std::max(begin, pixel)) * line[i * stride];
  }
  return sum / (end - begin);
}

// The one of `count` equal stretches of `size` pixels that contains the middle of pixel i.
struct Stretch {
  Stretch(int64_t i, int64_t count, int64_t size)
      : index((2 * i + 1) * count / (2 * size)),
        begin(static_cast<double>(index * size) / static_cast<double>(count)),
        end(static_cast<double>((index + 1) * size) / static_cast<double>(count)) {}
  int64_t index;
  double begin, end;
};

void Pixelate(const Image& image) {
  const double share = image.Level({.8, .6, .4, .3, .2});
  const auto rows = static_cast<int64_t>(std::ceil(share * static_cast<double>(image.height)));
  const auto columns = static_cast<int64_t>(std::ceil(share * static_cast<double>(image.width)));
  std::vector<double> wide(image.plane_size()), narrow(image.plane_size());
  for (int64_t c = 0; c < image.channels; ++c) {
    float* plane = image.plane(c);
    std::copy_n(plane, image.plane_size(), wide.begin());
    for (int64_t y = 0; y < image.height; ++y) {
      for (int64_t x = 0; x < image.width; ++x) {
        const Stretch stretch(x, columns, image.width);
        narrow[y * image.width + x] = MeanOver(&wide[y * image.width], 1, stretch.begin, stretch.end);
      }
    }
    for (int64_t y = 0; y < image.height; ++y) {
      const Stretch stretch(y, rows, image.height);
      for (int64_t x = 0; x < image.width; ++x) {
        plane[y * image.width + x] = static_cast<float>(MeanOver(&narrow[x], image.width, stretch.begin, stretch.end));
      }
    }
  }
}

void Rotate(const Image& image) {
  const bool clockwise = image.numbers.Block(0).word[0] >> 31 != 0;
  const double angle = (clockwise ? 1 : -1) * image.severity * 6 * kPi / 180;
  const double middle_y = static_cast<double>(image.height - 1) / 2,
               middle_x = static_cast<double>(image.width - 1) / 2;
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const std::vector<float> before(image.values, image.values + image.channels * image.plane_size());
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      const double from_y = static_cast<double>(y) - middle_y, from_x = static_cast<double>(x) - middle_x;
      const double down = std::clamp(middle_y + cosine * from_y - sine * from_x, 0.0, 2 * middle_y);
      const double right = std::clamp(middle_x + sine * from_y + cosine * from_x, 0.0, 2 * middle_x);
      const auto top = static_cast<int64_t>(down), left = static_cast<int64_t>(right);
      const int64_t bottom = std::min(top + 1, image.height - 1), beside = std::min(left + 1, image.width - 1);
      const double v = down - static_cast<double>(top), u = right - static_cast<double>(left);
      for (int64_t c = 0; c < image.channels; ++c) {
        const float* plane = &before[c * image.plane_size()];
        const double upper = (1 - u) * plane[top * image.width + left] + u * plane[top * image.width + beside];
        const double lower = (1 - u) * plane[bottom * image.width + left] + u * plane[bottom * image.width + beside];
        image.plane(c)[y * image.width + x] = static_cast<float>((1 - v) * upper + v * lower);
      }
    }
  }
}

void Apply(CorruptionKind kind, const Image& image) {
  switch (kind) {
    case CorruptionKind::kGaussianNoise:
      return GaussianNoise(image);
    case CorruptionKind::kShotNoise:
      return ShotNoise(image);
    case CorruptionKind::kImpulseNoise:
      return ImpulseNoise(image);
    case CorruptionKind::kSpeckleNoise:
      return SpeckleNoise(image);
    case CorruptionKind::kDefocusBlur:
      return BlurPlanes(image, DiscKernel(0.5 + image.length() / 64));
    case CorruptionKind::kGaussianBlur:
      return BlurPlanes(image, GaussianKernel(0.3 + image.length() / 128));
    case CorruptionKind::kMotionBlur:
      return BlurPlanes(image, LineKernel(1 + image.length() / 16, kPi * image.numbers.Uniform(0)));
    case CorruptionKind::kBrightness:
      return Brightness(image);
    case CorruptionKind::kContrast:
      return Contrast(image);
    case CorruptionKind::kFog:
      return Fog(image);
    case CorruptionKind::kPixelate:
      return Pixelate(image);
    case CorruptionKind::kRotate:
      return Rotate(image);
  }
}

}  // namespace

absl::StatusOr<Corrupter> Corrupter::Create(const Corruption& corruption, const std::vector<int64_t>& input_shape) {
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(Validate(corruption)));
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateForImages(corruption, input_shape)));
  return Corrupter(*EnumFromName<CorruptionKind>(corruption.name), corruption.severity, corruption.seed,
                   {input_shape[0], input_shape[1], input_shape[2]});
}

void Corrupter::Change(int64_t row, float* image) const {
  const RowNumbers numbers = {Fold(RngKey{seed_}, static_cast<uint64_t>(row)), static_cast<uint64_t>(kind_)};
  Apply(kind_, {shape_.channels, shape_.height, shape_.width, image, severity_, numbers});
  for (int64_t i = 0; i < shape_.values(); ++i) image[i] = std::clamp(image[i], 0.0f, 1.0f);
}

}  // namespace chainfleet
