// Prints the page of WholeReport, for a browser to look at.
#include <iostream>

#include "tests/client/report_fixture.h"

int main() {
  std::cout << chainfleet::RenderReport(chainfleet::WholeReport());
  return std::cout ? 0 : 1;
}
