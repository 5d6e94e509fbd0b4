// Prints a page of the report's tests for a browser.
//   report_page whole | numbers | hostile TEXT | number DOUBLE | random SEED
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/client/report_fixture.h"

namespace chainfleet {
namespace {

ReportContents Named(const std::string& name, const std::string& argument) {
  if (name == "numbers") return NumbersReport();
  if (name == "hostile") return HostileReport(argument);
  if (name == "number") return ReportOf(std::strtod(argument.c_str(), nullptr));
  if (name == "random") return RandomReport(std::strtoull(argument.c_str(), nullptr, 10));
  return WholeReport();
}

}  // namespace
}  // namespace chainfleet

int main(int argc, char** argv) {
  std::cout << chainfleet::RenderReport(chainfleet::Named(argc > 1 ? argv[1] : "whole", argc > 2 ? argv[2] : ""));
  return std::cout ? 0 : 1;
}
