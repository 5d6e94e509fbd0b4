// Runs a test with every combination of its choices, until each choice has had every value.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace chainfleet {

class Choices {
 public:
  // Returns one of 0 .. count - 1, for count >= 1.
  size_t Next(size_t count) {
    if (next_ == path_.size()) path_.push_back({0, count});
    return path_[next_++].taken;
  }

  // Depth first. REQUIRES: `run` makes the same choices after the same values. Returns the number of runs.
  static int ForEach(const std::function<void(Choices*)>& run) {
    Choices choices;
    for (int runs = 1;; ++runs) {
      choices.next_ = 0;
      run(&choices);
      while (!choices.path_.empty() && choices.path_.back().taken + 1 == choices.path_.back().count) {
        choices.path_.pop_back();
      }
      if (choices.path_.empty()) return runs;
      ++choices.path_.back().taken;
    }
  }

 private:
  struct Choice {
    size_t taken, count;
  };
  std::vector<Choice> path_;
  size_t next_ = 0;
};

}  // namespace chainfleet
