// Which numbers are standardised before a network or a regression sees them.
#pragma once

namespace chainfleet {

// Standardise by mean and deviation of the training set.
struct StandardizeSpec {
  bool inputs = true;   // false: as stored, uint8 as x / 255
  bool targets = true;  // of float32 targets; false: learned in their own units
  static void Fields(auto& self, auto&& visit) {
    visit("inputs", self.inputs);
    visit("targets", self.targets);
  }
  bool operator==(const StandardizeSpec&) const = default;
};

}  // namespace chainfleet
