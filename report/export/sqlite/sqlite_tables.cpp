#include "report/export/sqlite/sqlite_tables.h"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "format/base/check.h"
#include "format/base/file.h"
#include "format/base/handle.h"
#include "format/base/output_location.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"

namespace xpu {
namespace {

using Database = Handle<sqlite3, sqlite3_close>;
using Statement = Handle<sqlite3_stmt, sqlite3_finalize>;

class SqliteTables final : public TableSink {
 public:
  SqliteTables(Database database, std::string path)
      : database_(std::move(database)), path_(std::move(path)) {}

  void Prepare() {
    // The database is of this process alone until it is whole. 16 MiB of pages are kept.
    Execute(
        "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;"
        "PRAGMA cache_size=-16384;"
        "BEGIN; CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);");
    add_text_ = Compile("INSERT INTO StringIds VALUES (?, ?)");
  }

  void Begin(std::string_view table, std::span<const ExportColumn> columns) override {
    std::string create = Format("CREATE TABLE \"{}\" (", table);
    std::string insert = Format("INSERT INTO \"{}\" VALUES (", table);
    types_.clear();
    for (const ExportColumn& column : columns) {
      const std::string_view separator = types_.empty() ? "" : ", ";
      AppendFormat(create, "{}\"{}\" {}", separator, column.name, TypeText(column.type));
      AppendFormat(insert, "{}?", separator);
      types_.push_back(column.type);
    }
    Execute(create + ")");
    insert_ = Compile(insert + ")");
    column_ = 0;
  }

  void Signed(int64_t value) override {
    if (failed()) return;
    Check(sqlite3_bind_int64(insert_.get(), NextColumn(), value));
  }
  // SQLite has no unsigned numbers: from 2^63 on they read as negative ones.
  void Unsigned(uint64_t value) override { Signed(static_cast<int64_t>(value)); }
  void Text(std::string_view text) override {
    if (failed()) return;
    if (types_.at(column_) == ColumnType::kText) {
      Signed(IdOf(text));
    } else {
      BindText(insert_.get(), NextColumn(), ForOneLine(text));
    }
  }
  void Null() override {
    if (failed()) return;
    Check(sqlite3_bind_null(insert_.get(), NextColumn()));
  }
  void EndRow() override {
    if (failed()) return;
    XPU_CHECK(column_ == types_.size());
    Step(insert_.get());
    column_ = 0;
  }
  void End() override { insert_.reset(); }

  bool failed() const override { return !status_.ok(); }
  Status Close() override {
    insert_.reset();
    add_text_.reset();
    Execute("COMMIT");
    Check(sqlite3_close(database_.get()));
    if (status_.ok()) (void)database_.release();
    return status_;
  }

 private:
  static std::string_view TypeText(ColumnType type) {
    switch (type) {
      case ColumnType::kKey:
        return "INTEGER NOT NULL PRIMARY KEY";
      case ColumnType::kInteger:
        return "INTEGER";
      case ColumnType::kText:
        return "INTEGER REFERENCES StringIds(id)";
      case ColumnType::kPlainText:
        return "TEXT";
    }
    return "";
  }

  int NextColumn() { return static_cast<int>(++column_); }

  void Check(int result) {
    if (result == SQLITE_OK || result == SQLITE_DONE || failed()) return;
    if (result == SQLITE_FULL) {
      status_ = SystemError(Format("{}: write", path_), ENOSPC, WriteHint(ENOSPC));
      return;
    }
    const int number = sqlite3_system_errno(database_.get());
    const std::string what = Format("{}: write: {}", path_, sqlite3_errmsg(database_.get()));
    const bool is_system = result == SQLITE_IOERR || result == SQLITE_CANTOPEN;
    status_ =
        is_system && number != 0 ? SystemError(what, number) : Error{ErrorKind::kSystem, what, ""};
  }
  void Execute(const std::string& statements) {
    if (failed()) return;
    Check(sqlite3_exec(database_.get(), statements.c_str(), nullptr, nullptr, nullptr));
  }
  Statement Compile(const std::string& statement) {
    sqlite3_stmt* compiled = nullptr;
    if (failed()) return nullptr;
    Check(sqlite3_prepare_v2(database_.get(), statement.c_str(), -1, &compiled, nullptr));
    return Statement(compiled);
  }
  void Step(sqlite3_stmt* statement) {
    const int result = sqlite3_step(statement);
    if (result != SQLITE_DONE) Check(result);
    sqlite3_reset(statement);
  }
  void BindText(sqlite3_stmt* statement, int place, const std::string& text) {
    Check(sqlite3_bind_text64(statement, place, text.data(), text.size(), SQLITE_TRANSIENT,
                              SQLITE_UTF8));
  }

  int64_t IdOf(std::string_view text) {
    std::string shown = ForOneLine(text);
    const auto next = static_cast<int64_t>(ids_.size());
    const auto [known, is_new] = ids_.try_emplace(std::move(shown), next);
    if (is_new) {
      Check(sqlite3_bind_int64(add_text_.get(), 1, next));
      BindText(add_text_.get(), 2, known->first);
      Step(add_text_.get());
    }
    return known->second;
  }

  Database database_;
  const std::string path_;
  Statement add_text_;
  Statement insert_;
  std::vector<ColumnType> types_;  // of the table that is begun
  size_t column_ = 0;
  std::unordered_map<std::string, int64_t> ids_;
  Status status_ = Ok();
};

}  // namespace

Result<std::unique_ptr<TableSink>> OpenSqliteTables(const std::string& path) {
  // Emptied by the rules of all outputs; SQLite takes an empty file for a new database.
  XPU_ASSIGN_OR_RETURN(UniqueFd file, CreateOrReplace(path));
  std::error_code ignored;
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Error{ErrorKind::kUsage, Format("{}: not a regular file", path),
                 "SQLite needs a regular file: name one with -o"};
  }
  // Uses the name that the file has, so that no link is followed again.
  const std::string name =
      std::filesystem::read_symlink(Format("/proc/self/fd/{}", file.get()), ignored);
  sqlite3* opened = nullptr;
  const int result =
      sqlite3_open_v2(name.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, nullptr);
  Database database(opened);
  if (result != SQLITE_OK) {
    return Error{ErrorKind::kSystem, Format("{}: open: {}", path, sqlite3_errstr(result)), ""};
  }
  auto tables = std::make_unique<SqliteTables>(std::move(database), path);
  tables->Prepare();
  if (tables->failed()) return tables->Close().error();
  return std::unique_ptr<TableSink>(std::move(tables));
}

std::string SqliteVersion() { return ::sqlite3_libversion(); }

}  // namespace xpu
