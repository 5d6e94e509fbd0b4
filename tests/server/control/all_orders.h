// Every way in which choices of a run can fall out: the run asks, and is repeated until each answer was given.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace chainfleet {

class Choices {
 public:
  // One of 0 .. count - 1, for count >= 1.
  size_t Next(size_t count) {
    if (next_ == path_.size()) path_.push_back({0, count});
    return path_[next_++].taken;
  }

  // Depth first; `run` must ask the same questions after the same answers. Returns the number of runs.
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
