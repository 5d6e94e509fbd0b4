#include "client/cli/report/example_pictures.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/report/png.h"
#include "client/cli/views/markup.h"

namespace chainfleet {
namespace {

constexpr int64_t kLeastSide = 2, kMostSide = 1024;

// The rows, [n, channels, height, width] in 0..255.
struct Pictures {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<uint8_t> values;
  int64_t size() const { return channels * height * width; }
};

// Floats in 0..1 as they are; others, standardised ones say, from the smallest to the largest of all rows.
std::vector<uint8_t> Brightness(const v1::DatasetRowValues& rows) {
  const std::string& bytes = rows.inputs();
  if (rows.type() == v1::UINT8) return {bytes.begin(), bytes.end()};
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  float low = 0, high = 1;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  std::vector<uint8_t> brightness;
  for (const float value : values) {
    const float share = std::isfinite(value) ? (value - low) / (high - low) : 0;
    brightness.push_back(static_cast<uint8_t>(std::lround(255 * share)));
  }
  return brightness;
}

std::optional<Pictures> Decode(const v1::DatasetRowValues& rows, int num_examples) {
  if (rows.shape_size() != 4 || rows.shape(0) != num_examples) return std::nullopt;
  google::protobuf::RepeatedField<int64_t> shape(rows.shape().begin() + 1, rows.shape().end());
  if (!IsPicture(shape)) return std::nullopt;
  Pictures pictures{shape[0], shape[1], shape[2], Brightness(rows)};
  if (static_cast<int64_t>(pictures.values.size()) != num_examples * pictures.size()) return std::nullopt;
  return pictures;
}

std::string PngOf(const Pictures& pictures, int index) {
  const int64_t pixels = pictures.height * pictures.width;
  std::string samples(static_cast<size_t>(pictures.size()), '\0');
  for (int64_t channel = 0; channel < pictures.channels; ++channel) {
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      samples[static_cast<size_t>(pixel * pictures.channels + channel)] =
          static_cast<char>(pictures.values[static_cast<size_t>(index * pictures.size() + channel * pixels + pixel)]);
    }
  }
  return EncodePng(samples, pictures.width, pictures.height, static_cast<int>(pictures.channels));
}

std::string Card(const v1::ExampleRow& example, const std::string& picture) {
  const bool right = example.label() == example.predicted();
  std::string html = absl::StrCat("<li class=\"", right ? "right" : "wrong", "\">");
  if (!picture.empty()) {
    absl::StrAppend(&html, "<img src=\"", picture, "\" alt=\"row ", example.row(), "\">");
  }
  const double percent = 100 * std::clamp(example.max_probability(), 0.0, 1.0);
  return absl::StrCat(
      html, "<b>", right ? "✓" : "✗", " class ", example.predicted(), "</b>",
      right ? "" : absl::StrCat("<span>is class ", example.label(), "</span>"),
      absl::StrFormat("<span class=\"meter\"><i style=\"width:%.1f%%\"></i></span><span>%.1f %% sure</span>", percent,
                      percent),
      absl::StrFormat(
          "<span title=\"mutual information %.4f nats\">H %.3f nats</span><span class=\"row\">row %d</span>",
          example.mutual_information(), example.predictive_entropy(), example.row()),
      "</li>\n");
}

}  // namespace

bool IsPicture(const google::protobuf::RepeatedField<int64_t>& shape) {
  if (shape.size() != 3 || (shape[0] != 1 && shape[0] != 3)) return false;
  return std::all_of(shape.begin() + 1, shape.end(),
                     [](int64_t side) { return side >= kLeastSide && side <= kMostSide; });
}

std::optional<Figure> ExamplesFigure(const v1::Evaluation& evaluation, const v1::DatasetRowValues& rows) {
  const int n = evaluation.examples_size();
  if (n == 0) return std::nullopt;
  const std::optional<Pictures> pictures = Decode(rows, n);
  std::string html;
  for (int i = 0; i < n; ++i) {
    // The most certain rows come first, as many as of the least certain.
    if (i == 0) html += "<h4>Most certain</h4>\n<ul class=\"examples\">\n";
    if (i == (n + 1) / 2) html += "</ul>\n<h4>Least certain</h4>\n<ul class=\"examples\">\n";
    const std::string png = pictures ? PngOf(*pictures, i) : "";
    html += Card(evaluation.examples(i), png.empty() ? "" : DataUri(png));
  }
  return Figure{"examples",
                "What is it sure of, and what not?",
                html + "</ul>\n",
                "Good: certain ones are plain and right, uncertain ones hard for people too. Bad: a ✗ among the most "
                "certain: look whether its label is wrong, or something the training set never showed.",
                {},
                true};
}

}  // namespace chainfleet
