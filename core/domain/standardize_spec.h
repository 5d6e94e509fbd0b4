// Which numbers are standardised before a network or a regression sees them.
#pragma once

namespace chainfleet {

// Targets never are: they are learned in their own units.
struct StandardizeSpec {
  bool inputs = true;  // by mean and deviation of the training set; false: as stored, uint8 as x / 255
  static void Fields(auto& self, auto&& visit) { visit("inputs", self.inputs); }
  bool operator==(const StandardizeSpec&) const = default;
};

}  // namespace chainfleet
