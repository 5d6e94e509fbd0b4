#include "client/cli/report/scale.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace chainfleet {
namespace {

constexpr double kSlack = 1e-9;      // of a step, for ticks at the very ends
constexpr double kLeastSpan = 1e-9;  // of an axis, in parts of its numbers: below it ticks could not be told apart

// The smallest of 1, 2, 5 times a power of ten that cuts `span` into fewer than `most` pieces.
double Step(double span, int most) {
  const double least = span / std::max(1, most - 1), power = std::pow(10, std::floor(std::log10(least)));
  for (const double multiple : {1.0, 2.0, 5.0}) {
    if (multiple * power >= least * (1 - kSlack)) return multiple * power;
  }
  return 10 * power;
}

std::string Superscript(int exponent) {
  static constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "⁻" : "";
  for (const char digit : std::to_string(std::abs(exponent))) text += kDigits[digit - '0'];
  return text;
}

std::string PowerLabel(double value, int decimals) {
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value)) + kSlack));
  const double mantissa = value / std::pow(10, exponent);
  const std::string power = absl::StrCat("10", Superscript(exponent));
  if (std::abs(std::abs(mantissa) - 1) < kSlack && decimals == 0) return value < 0 ? absl::StrCat("−", power) : power;
  return absl::StrFormat("%.*f·%s", decimals, mantissa, power);
}

// "-1234567.50" to "−1,234,567.50".
std::string Grouped(const std::string& text) {
  const bool negative = text[0] == '-';
  const size_t begin = negative ? 1 : 0, point = std::min(text.find('.'), text.size());
  std::string grouped = negative ? "−" : "";
  for (size_t i = begin; i < text.size(); ++i) {
    if (i > begin && i < point && (point - i) % 3 == 0) grouped += ',';
    grouped += text[i];
  }
  return grouped;
}

}  // namespace

std::string TickLabel(double value, double step) {
  if (std::abs(value) < step * kSlack) return "0";
  const int step_power = static_cast<int>(std::floor(std::log10(step) + kSlack));
  if (std::abs(value) >= 1e7 || std::abs(value) < 1e-4 || step_power < -5) {
    const int value_power = static_cast<int>(std::floor(std::log10(std::abs(value)) + kSlack));
    return PowerLabel(value, std::clamp(value_power - step_power, 0, 12));
  }
  return Grouped(absl::StrFormat("%.*f", std::max(0, -step_power), value));
}

Scale Scale::Linear(double low, double high) {
  if (!std::isfinite(high - low)) return {0, 1, false};
  if (low > high) std::swap(low, high);
  const double size = std::max(std::abs(low), std::abs(high));
  if (high - low > kLeastSpan * size) return {low, high, false};
  const double half = size == 0 ? 0.5 : size / 2;
  return {low - half, high + half, false};
}

Scale Scale::Rounded(double low, double high, int most) {
  const Scale plain = Linear(low, high);
  const double step = Step(plain.high_ - plain.low_, most);
  return {std::floor(plain.low_ / step + kSlack) * step, std::ceil(plain.high_ / step - kSlack) * step, false};
}

Scale Scale::Log(double low, double high) {
  if (!(low > 0) || !(high > 0) || !std::isfinite(low) || !std::isfinite(high)) return Linear(low, high);
  if (low > high) std::swap(low, high);
  if (std::log(high) - std::log(low) < kLeastSpan) return {low / 2, high * 2, true};
  return {low, high, true};
}

double Scale::Share(double value) const {
  const double share =
      log_ ? (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_)) : (value - low_) / (high_ - low_);
  return share > 0 ? std::min(share, 1.0) : 0;
}

std::vector<Tick> Scale::LogTicks(int most) const {
  const int first = static_cast<int>(std::floor(std::log10(low_) + kSlack));
  const int last = static_cast<int>(std::ceil(std::log10(high_) - kSlack));
  const int every = std::max(1, (last - first + most) / std::max(1, most));
  std::vector<Tick> ticks;
  for (int power = first; power <= last; power += every) {
    for (const double multiple : {1.0, 2.0, 5.0}) {
      if (multiple > 1 && (every > 1 || 3 * (last - first) > most)) continue;
      const double value = multiple * std::pow(10, power);
      if (value < low_ * (1 - kSlack) || value > high_ * (1 + kSlack)) continue;
      ticks.push_back({value, TickLabel(value, std::pow(10, power))});
    }
  }
  return ticks;
}

std::vector<Tick> Scale::Ticks(int most) const {
  if (log_) {
    std::vector<Tick> ticks = LogTicks(most);
    if (ticks.size() > 1) return ticks;  // else it is too short for powers of ten
  }
  const double step = Step(high_ - low_, most);
  std::vector<Tick> ticks;
  const double first = std::ceil(low_ / step - kSlack), last = std::floor(high_ / step + kSlack);
  for (double i = first; i <= last; ++i) ticks.push_back({i * step, TickLabel(i * step, step)});
  return ticks;
}

}  // namespace chainfleet
