// The operators that a .pt2 file may use: they compute on tensors, numbers and lists, depend on nothing else, and
// return what depends on their arguments only.
#pragma once

#include <span>
#include <string_view>

namespace chainfleet {

// Sorted: "_operator::add", "aten::add", "aten::conv2d", ... without overloads.
std::span<const std::string_view> ExportedOperators();

bool IsExportedOperator(std::string_view name);

}  // namespace chainfleet
