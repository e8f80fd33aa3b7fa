#include "report/views/tables/table.h"

#include <gtest/gtest.h>

#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

Table TableOf(std::vector<Row> rows) {
  Table table{"sum", "Sums", {{"Total (ns)"}, {"Min (ns)"}, {"Name", true}}, rows.size()};
  table.row = [rows = std::move(rows)](size_t index, Row& cells) { cells = rows[index]; };
  return table;
}

std::vector<std::string> ShownNames(const Table& table) {
  std::vector<std::string> names;
  Row cells;
  for (size_t i = 0; i < table.shown(); ++i) {
    table.MakeShown(i, cells);
    names.push_back(cells[2]);
  }
  return names;
}

using Names = std::vector<std::string>;

std::string Written(const Table& table, TableFormat format, bool one_of_many = false) {
  return test::Written([&](Output& output) {
    TableWriter writer(format, output);
    writer.Write(table, one_of_many);
    writer.Close();
  });
}

TEST(TableWriter, TextShortensPathsAndInnerNamesAndCsvDoesNot) {
  std::string path = "main";
  for (int i = 0; i < 40; ++i) path += ";function" + std::to_string(i);
  const std::string name(100, 'n');
  Table table{
      "gaps", "Gaps", {{"Name", true}, {.name = "Path", .is_text = true, .is_path = true}}, 1};
  table.row = [&](size_t, Row& cells) { cells = {name, path}; };
  const std::string text = Written(table, TableFormat::kTable);
  EXPECT_NE(text.find(" main > [33 frames] > function33 > "), std::string::npos) << text;
  EXPECT_NE(text.find(" > function39\n"), std::string::npos) << text;
  EXPECT_EQ(text.find(std::string(61, 'n')), std::string::npos) << text;
  EXPECT_EQ(Written(table, TableFormat::kCsv), "Name,Path\n" + name + "," + path + "\n");
}

// They are copied into filters, which take several numbers with commas between them.
TEST(TableWriter, IdsHaveNoThousands) {
  Table table{"calls", "Calls", {{.name = "Pid", .is_id = true}, {"Count"}}, 1};
  table.row = [](size_t, Row& cells) { cells = {"10001343", "10001343"}; };
  const std::string text = Written(table, TableFormat::kTable);
  EXPECT_NE(text.find(" 10001343 "), std::string::npos) << text;
  EXPECT_NE(text.find(" 10,001,343\n"), std::string::npos) << text;
}

TEST(FindColumn, AnyCaseAndTheBeginOfOneName) {
  const std::vector<Column> columns = {{"Total (ns)"}, {"Min (ns)"}, {"Max (ns)"}, {"Max", true}};
  EXPECT_EQ(FindColumn(columns, "total (NS)").value(), 0u);
  EXPECT_EQ(FindColumn(columns, "mi").value(), 1u);
  EXPECT_EQ(FindColumn(columns, "max").value(), 3u);  // the whole name counts more
  EXPECT_EQ(FindColumn(columns, "m").value(), 1u);    // the first of those that begin so
  EXPECT_EQ(FindColumn(columns, "x").error().message,
            "'x' is not one of the columns Total (ns), Min (ns), Max (ns), Max");
}

TEST(FindColumn, WhatAShareIsOfBeforeTheShare) {
  EXPECT_EQ(FindColumn({{"Total (%)"}, {"Total Time (ns)"}, {"Name", true}}, "total").value(), 1u);
}

TEST(FindColumn, AWordWithinANameThatIsNoShare) {
  EXPECT_EQ(FindColumn({{"GPU Total (%)"}, {"GPU Total Time (ns)"}}, "total").value(), 1u);
  EXPECT_FALSE(FindColumn({{"GPU Total (%)"}}, "otal").ok());
}

TEST(SortBy, NumbersDescendingTextsAscending) {
  Table table = TableOf({{"9", "1.5", "b"},
                         {"18446744073709551615", "", "c"},
                         {"18446744073709551614", "-2", "a"},
                         {"9", "1.25", "d"}});
  SortBy(table, 0);
  EXPECT_EQ(ShownNames(table), (Names{"c", "a", "b", "d"}));  // equal ones as they were
  SortBy(table, 1);
  EXPECT_EQ(ShownNames(table), (Names{"b", "d", "a", "c"}));  // what is not known comes last
  SortBy(table, 2);
  EXPECT_EQ(ShownNames(table), (Names{"a", "b", "c", "d"}));
}

TEST(LimitRows, OfTheOrderThatIsShown) {
  Table table = TableOf({{"1", "", "a"}, {"2", "", "b"}, {"3", "", "c"}});
  SortBy(table, 0);
  LimitRows(table, 2);
  EXPECT_EQ(ShownNames(table), (Names{"c", "b"}));
  LimitRows(table, 0);
  LimitRows(table, 5);
  EXPECT_EQ(table.shown(), 2u);
  Table unsorted = TableOf({{"1", "", "a"}, {"2", "", "b"}});
  LimitRows(unsorted, 1);
  EXPECT_EQ(ShownNames(unsorted), Names{"a"});
}

TEST(TableWriter, Text) {
  EXPECT_EQ(Written(TableOf({{"1234567", "-1234.5", "f(\xc3\xa4)\n\x1b[31m"}, {"8", "", "g"}}),
                    TableFormat::kTable),
            " ** Sums (sum):\n"
            "\n"
            " Total (ns)  Min (ns)  Name\n"
            " ----------  --------  ----------------\n"
            "  1,234,567  -1,234.5  f(\xc3\xa4)\\x0a\\x1b[31m\n"
            "          8            g\n"
            "\n");
  EXPECT_EQ(Written(TableOf({}), TableFormat::kTable), " ** Sums (sum): no rows\n\n");
  EXPECT_EQ(Written(TableOf({}), TableFormat::kTable, true), " Empty tables: sum\n");
}

// nsys, whose names scripts know, writes PID and Pid.
TEST(TableWriter, HeadingsAreSpelledInOneWay) {
  Table table{"calls", "Calls", {{.name = "Pid"}, {.name = "Tid"}, {.name = "CorrId"}}, 1};
  table.row = [](size_t, Row& cells) { cells = {"1", "2", "3"}; };
  EXPECT_NE(Written(table, TableFormat::kTable).find(" PID  TID  CorrID\n"), std::string::npos)
      << Written(table, TableFormat::kTable);
  EXPECT_EQ(Written(table, TableFormat::kCsv), "Pid,Tid,CorrId\n1,2,3\n");
}

TEST(TableWriter, Csv) {
  const Table table = TableOf({{"1234567", "", "f(int, \"x\")"}});
  EXPECT_EQ(Written(table, TableFormat::kCsv),
            "Total (ns),Min (ns),Name\n1234567,,\"f(int, \"\"x\"\")\"\n");
  EXPECT_EQ(Written(TableOf({}), TableFormat::kCsv, true), "# sum\nTotal (ns),Min (ns),Name\n");
}

TEST(TableWriter, Json) {
  EXPECT_EQ(Written(TableOf({{"7", "", "\"\xff"}, {"8", "1.5", "b"}}), TableFormat::kJson),
            "{\n\"sum\": [\n"
            "  {\"Total (ns)\": 7, \"Min (ns)\": null, \"Name\": \"\\\"\xef\xbf\xbd\"},\n"
            "  {\"Total (ns)\": 8, \"Min (ns)\": 1.5, \"Name\": \"b\"}\n"
            "]\n}\n");
  EXPECT_EQ(Written(TableOf({}), TableFormat::kJson), "{\n\"sum\": []\n}\n");
  EXPECT_EQ(test::Written([](Output& output) { TableWriter(TableFormat::kJson, output).Close(); }),
            "{\n}\n");
}

TEST(Colors, OnlyForTerminals) {
  EXPECT_EQ(Colors(true).Bad("x").text(), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(Colors(false).Bad("x").text(), "x");
  test::Written([](Output& output) { EXPECT_FALSE(ColorsOf(output).on()); });
}

}  // namespace
}  // namespace xpu
