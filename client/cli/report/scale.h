// Where a number lies on an axis, and which numbers are written beside it. Plain values.
#pragma once

#include <string>
#include <vector>

namespace chainfleet {

struct Tick {
  double value = 0;
  std::string label;
};

// From `low` to `high`, even in the number or in its logarithm.
class Scale {
 public:
  // The ends as they are; a span without length, or that is not finite, becomes one of length 1 or twice its size.
  static Scale Linear(double low, double high);
  // The ends moved outwards to the next ticks, `most` of them at most.
  static Scale Rounded(double low, double high, int most);
  // Of positive ends; else as Linear.
  static Scale Log(double low, double high);

  double low() const { return low_; }
  double high() const { return high_; }
  // 0 at the low end, 1 at the high one; what lies outside is put to the nearer end, NaN to the low one.
  double Share(double value) const;
  // Round numbers (1, 2 or 5 times a power of ten; of a logarithm powers of ten, with 2 and 5 if these are few).
  std::vector<Tick> Ticks(int most) const;

 private:
  Scale(double low, double high, bool log) : low_(low), high_(high), log_(log) {}
  std::vector<Tick> LogTicks(int most) const;

  double low_, high_;
  bool log_;
};

// "1,234,567", "0.025", "3.2e-7" with a real superscript: what an axis needs to tell ticks that are `step` apart.
std::string TickLabel(double value, double step);

}  // namespace chainfleet
