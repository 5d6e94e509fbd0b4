#include "client/cli/views/table.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

TEST(Table, AlignsColumnsAndLeavesNoTrailingSpace) {
  Table table({"JOB", ">DRAWS", "NOTE"});
  table.AddRow({"a", "1", "x"});
  table.AddRow({"longer", "12345", ""});
  EXPECT_EQ(table.Render(),
            "JOB     DRAWS  NOTE\n"
            "a           1  x\n"
            "longer  12345  -\n");
}

TEST(Table, SaysHowManyRowsAreLeftOut) {
  Table table({"A"});
  for (int i = 0; i < 5; ++i) table.AddRow({"x"});
  EXPECT_EQ(table.Render({.max_rows = 2}), "A\nx\nx\n... and 3 more\n");
  EXPECT_EQ(table.Render({.max_rows = 5}), "A\nx\nx\nx\nx\nx\n");
}

TEST(Table, ShowsWideColumnsInWideTablesOnly) {
  Table table({"A", "+>B", "C"});
  table.AddRow({"x", "1", "a long reason"});
  EXPECT_EQ(table.Render(), "A  C\nx  a long reason\n");
  EXPECT_EQ(table.Render({.wide = true}), "A  B  C\nx  1  a long reason\n");
}

TEST(Table, CountsCharactersNotBytesAndEscapesControls) {
  Table table({"CLASS", ">N"});
  table.AddRow({"Übergrößen", "1"});
  table.AddRow({"\x1b[2J\u202eb", "22"});
  EXPECT_EQ(table.Render(),
            "CLASS              N\n"
            "Übergrößen         1\n"
            "\\u001b[2J\\u202eb  22\n");
}

TEST(Table, CropsItsLongestTextFirstAndNeverANumber) {
  Table table({"JOB", "=STATE", ">DRAWS", "WORKER", "REASON"});
  table.AddRow({"a-long-name-abcdef", "SUCCEEDED", "1234567", "worker-17", "größer als erlaubt"});
  EXPECT_EQ(table.Render({.max_width = 69}), table.Render());
  EXPECT_EQ(table.Render({.max_width = 60}),
            "JOB               STATE        DRAWS  WORKER     REASON\n"
            "a-long-...abcdef  SUCCEEDED  1234567  worker-17  größ...aubt\n");
  EXPECT_EQ(table.Render({.max_width = 52}),
            "JOB               STATE        DRAWS  WORKER  REASON\n"
            "a-long-...abcdef  SUCCEEDED  1234567  wo...7  gr...t\n");
}

TEST(Table, LeavesOutTheLastColumnsThatDoNotFit) {
  Table table({"JOB", "REASON", ">DRAWS"});
  table.AddRow({"a-long-name-abcdef", "out of memory", "1234567"});
  EXPECT_EQ(table.Render({.max_width = 32}),
            "JOB                REASON\n"
            "a-long-...-abcdef  out of memory\n");
  EXPECT_EQ(table.Render({.max_width = 1}), "JOB\na-long-...abcdef\n");
}

TEST(Table, RendersHeadersWithoutRows) { EXPECT_EQ(Table({"A", ">B"}).Render(), "A  B\n"); }

TEST(Numbers, AreRoundedAndMissingOnesAreDashes) {
  EXPECT_EQ(Fixed(88.124999, 2), "88.12");
  EXPECT_EQ(Fixed(NAN, 2), "-");
  EXPECT_EQ(Significant(123456.789, 4), "1.235e+05");
  EXPECT_EQ(Significant(NAN, 4), "-");
}

TEST(Numbers, BytesChangeUnitAtThousand) {
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(1000), "1.0 kB");
  EXPECT_EQ(FormatBytes(999'949), "999.9 kB");
  EXPECT_EQ(FormatBytes(999'950), "1.0 MB");
  EXPECT_EQ(FormatBytes(4'194'304), "4.2 MB");
}

}  // namespace
}  // namespace chainfleet
