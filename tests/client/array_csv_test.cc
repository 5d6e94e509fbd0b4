#include "client/cli/array_csv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace chainfleet {
namespace {

Array Doubles(std::vector<int64_t> shape, const std::vector<double>& values) {
  return {ArrayType::kFloat64, std::move(shape),
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double))};
}

TEST(ArrayCsv, WritesAColumnForEachArrayAndClass) {
  EXPECT_EQ(CsvOf({{"mean_probability", Doubles({2, 2}, {0.1, 0.9, 1, 0})}, {"entropy", Doubles({2}, {1e-9, NAN})}}, 2),
            "row,entropy,mean_probability_0,mean_probability_1\n0,1e-09,0.1,0.9\n1,,1,0\n");
}

TEST(ArrayCsv, QuotesNamesOfColumns) {
  EXPECT_EQ(CsvOf({{"p", Doubles({1, 3}, {0, 1, 0})}}, 1, {{"p", {"no", "a, b", "\"c\""}}}),
            "row,p_no,\"p_a, b\",\"p_\"\"c\"\"\"\n0,0,1,0\n");
}

TEST(ArrayCsv, WritesNumbersThatReadBackExactly) {
  const double third = 1.0 / 3;
  const std::string text = CsvOf({{"p", Doubles({1}, {third})}}, 1);
  EXPECT_EQ(std::stod(text.substr(text.rfind(',') + 1)), third);
}

}  // namespace
}  // namespace chainfleet
