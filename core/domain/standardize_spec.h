// Settings for standardising inputs and targets before a network or a regression reads them.
#pragma once

namespace chainfleet {

// Standardises with the mean and deviation of the training set.
struct StandardizeSpec {
  bool inputs = true;   // false: as stored, uint8 as x / 255
  bool targets = true;  // float32 targets; false: learned in their own units
  static void Fields(auto& self, auto&& visit) {
    visit("inputs", self.inputs);
    visit("targets", self.targets);
  }
  bool operator==(const StandardizeSpec&) const = default;
};

}  // namespace chainfleet
