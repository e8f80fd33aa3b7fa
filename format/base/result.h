// The result of an operation that can fail: a value, or an Error that says what to do about it.
//
// Errors travel up by value and are printed by main() alone. A message names the object, the
// operation and the system's reason; the hint, where there is one, says what to do.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "format/base/check.h"

namespace xpu {

enum class ErrorKind {
  kSystem,       // a system call failed
  kNotFound,     // a file, process or symbol is not there
  kPermission,   // a privilege is missing
  kUnsupported,  // this kernel, library or machine cannot do it
  kInvalid,      // the input is damaged or not what it claims to be
  kUsage,        // the command line is wrong
  kBusy,         // not now: it is in use by others, or has no room at the moment
};

struct Error {
  ErrorKind kind = ErrorKind::kSystem;
  std::string message;
  std::string hint;  // empty: none known

  // "message" or "message\nhint: hint", as main() prints it.
  std::string ToString() const { return hint.empty() ? message : message + "\nhint: " + hint; }
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return Checked(); }
  const T& value() const& {
    XPU_CHECK(ok());
    return std::get<0>(state_);
  }
  T&& value() && { return std::move(Checked()); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &Checked(); }

  const Error& error() const& {
    XPU_CHECK(!ok());
    return std::get<1>(state_);
  }
  Error&& error() && {
    XPU_CHECK(!ok());
    return std::move(std::get<1>(state_));
  }

 private:
  T& Checked() {
    XPU_CHECK(ok());
    return std::get<0>(state_);
  }
  std::variant<T, Error> state_;
};

struct Nothing {};
using Status = Result<Nothing>;
inline Status Ok() { return Nothing{}; }

// "object: operation: strerror(errno)" with the kind that the errno value stands for.
Error SystemError(std::string what, int error_number, std::string hint = {});

}  // namespace xpu

#define XPU_CONCAT_INNER(a, b) a##b
#define XPU_CONCAT(a, b) XPU_CONCAT_INNER(a, b)

// Returns the error of a Status or Result from the enclosing function.
#define XPU_RETURN_IF_ERROR(expression) \
  if (auto xpu_status = (expression); !xpu_status.ok()) return std::move(xpu_status).error()

// XPU_ASSIGN_OR_RETURN(auto file, OpenFile(path));
#define XPU_ASSIGN_OR_RETURN(declaration, expression)            \
  auto XPU_CONCAT(xpu_result_, __LINE__) = (expression);         \
  if (!XPU_CONCAT(xpu_result_, __LINE__).ok())                   \
    return std::move(XPU_CONCAT(xpu_result_, __LINE__)).error(); \
  declaration = std::move(XPU_CONCAT(xpu_result_, __LINE__)).value()
