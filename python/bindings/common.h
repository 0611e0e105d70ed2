// What the files of the extension share: the Python forms of tensors, graphs and values, and conversions to them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "rlx/ir/build/line_of_call.h"
#include "rlx/ir/graph.h"
#include "rlx/tensor/tensor.h"

namespace rlx::python {
namespace nb = nanobind;

/// A dtype as Python sees it: one object each, `rlx.float32`.
struct PyDType {
  DType type;
};
/// The name that NumPy, ml_dtypes and JAX have for it: "float32", "bfloat16", "float8_e4m3fn".
std::string_view numpy_name(DType t);
/// The object of a dtype.
nb::object dtype_object(DType t);
/// Of a dtype, its name ("f32", "float32"), a NumPy dtype or scalar type, or Python's bool, int, float and complex;
/// none when it is nothing of the kind.
std::optional<DType> dtype_or_none(nb::handle h);
/// The same; TypeError naming what it is, after `what`.
DType dtype_from(nb::handle h, const char* what = "dtype");

/// An immutable array, which shares the tensor's bytes. `weak`: made of Python scalars alone, so that in arithmetic
/// the other operand's dtype wins.
struct PyArray {
  Tensor tensor;
  bool weak = false;
};
nb::object array_object(Tensor t, bool weak = false);
/// Raises InvalidArgument for an array whose bytes were donated to a call: it has nothing left to read.
void check_not_donated(const PyArray& a);
/// The bytes on the host; other threads go on while a device copies them.
Tensor on_host(Tensor t);
/// The path of a file or folder that can be read; else Python's own OSError that names it.
std::string existing(const std::filesystem::path& path);
/// "cpu", "cuda:1"; DeviceUnavailable for what is no device.
DeviceId device_from(const std::string& text);

/// A graph that Python builds on; shared, so that values and bodies may point to it.
struct PyGraph {
  explicit PyGraph(std::string name) : graph(std::make_unique<Graph>(std::move(name))) {}
  explicit PyGraph(Graph g) : graph(std::make_unique<Graph>(std::move(g))) {}
  std::unique_ptr<Graph> graph;  // null once it was compiled
  Graph& get() const;
};

/// A value under construction: of a graph that is built by hand, or of a function that is traced.
struct PyValue {
  Expr expr;
  bool weak = false;
  SourceLoc loc;           // the user's line that made it: told when it leaked
  std::int64_t trace = 0;  // which trace made it; 0: a graph built by hand
  nb::object number{};     // the Python number that it is a constant of: other dtypes are made of it, not of the value
};

// -- the user's line --
/// The first frame that is not of this package; its file's name lives as long as the process.
SourceLoc user_line();
/// The user's line of a call that builds without asking Python: while it lives, nodes and errors of whatever functions
/// of ops it calls stand there, not at lines of the library.
class UserCall {
 public:
  SourceLoc loc() const { return loc_; }

 private:
  SourceLoc loc_ = user_line();
  LineOfCall line_{loc_};
};
/// Files below this folder are this package's own.
void set_package_folder(const std::string& folder);
/// A file's name that lives as long as the process.
const char* lasting_name(std::string_view file);

// -- errors --
/// A diagnostic for an exception of Python code, in `what`; where it is raised as an error, the exception itself is.
Diagnostic kept_exception(nb::python_error& e, const std::string& what);
[[noreturn]] inline void raise(ErrorCode code, std::string message, std::string hint = {}) {
  throw Error(Diagnostic{code, std::move(message), built_at(user_line()), std::move(hint)});
}

/// "'yes' (str)": what was given, for messages; cut where it is long.
std::string described(nb::handle h);
/// What a parameter of this C++ type takes, for messages.
template <class T>
constexpr const char* taken_as() {
  if constexpr (std::is_same_v<T, bool>)
    return "True or False";
  else if constexpr (std::is_integral_v<T>)
    return "an integer of 64 bits";
  else if constexpr (std::is_floating_point_v<T>)
    return "a number";
  else if constexpr (std::is_same_v<T, std::string>)
    return "a string";
  else if constexpr (std::is_same_v<T, std::vector<std::string>>)
    return "a list of strings";
  else if constexpr (std::is_same_v<T, nb::dict>)
    return "a dict";
  else if constexpr (std::is_same_v<T, std::vector<std::vector<std::int64_t>>>)
    return "a list of lists of integers";
  else
    return "an rlx.Graph";
}
/// The C++ value of a Python object; TypeError naming `what` where it is none.
template <class T>
T cast_as(nb::handle h, std::string_view what) {
  try {
    return nb::cast<T>(h);
  } catch (const nb::cast_error&) {
    raise(ErrorCode::DTypeMismatch, concat_text(what, " must be ", taken_as<T>(), ", got ", described(h)));
  }
}

// -- arrays --
/// The bytes of an array-like object as a tensor: shared where they are dense and aligned and may be (`share`), else
/// copied. `what` begins the message of an error.
Tensor tensor_from(nb::handle h, const char* what, bool share = true, std::optional<DType> dtype = std::nullopt);
/// True for what `tensor_from` takes without asking NumPy: an array of ours, the buffer protocol, DLPack.
bool is_array_like(nb::handle h);
/// A Python bool, int, float or complex (not NumPy's) as a weakly typed scalar; none for others.
std::optional<Tensor> weak_scalar(nb::handle h);
/// A buffer of the array's elements while it lives; the dtype by the buffer's format.
class BufferHold {
 public:
  BufferHold() = default;
  BufferHold(const BufferHold&) = delete;
  BufferHold& operator=(const BufferHold&) = delete;
  ~BufferHold();
  /// True when `h` gives its bytes; no Python error is left behind otherwise.
  bool take(nb::handle h, bool writable = false);
  /// The dtype of the elements; none for a format that no dtype has.
  std::optional<DType> dtype() const;
  bool dense() const;
  const Py_buffer& view() const { return view_; }

 private:
  Py_buffer view_{};
  bool held_ = false;
};

/// A dim as Python's int, or as rlx.Dim when it is symbolic.
nb::object dim_object(const Dim& d);
Dim dim_from(nb::handle h, const char* what = "a dimension");
Dims dims_from(nb::handle h, const char* what = "shape");
nb::tuple dims_object(const Dims& dims);
nb::tuple dims_object(std::span<const std::int64_t> dims);

// -- tracing --
nb::object value_object(Expr e, SourceLoc loc, bool weak = false);
/// The graph of a value; InvalidArgument naming the line that made it when that is gone.
Graph& graph_of(const PyValue& v);
/// The graph that nodes go to now: of the innermost function under trace; null outside of any.
Graph* traced_graph();
/// The value of this graph that `h` stands for: a value, an array or a number, which become constants.
Expr operand_from(Graph& g, nb::handle h, SourceLoc loc, bool* weak = nullptr, std::optional<DType> beside = {});

// -- each file's part of the module --
void bind_errors(nb::module_& m);
void bind_dtypes(nb::module_& m);
void bind_arrays(nb::module_& m);
void bind_dims(nb::module_& m);
void bind_graphs(nb::module_& m);
void bind_ops(nb::module_& m);
void bind_fft(nb::module_& m);
void bind_control(nb::module_& m);
void bind_special(nb::module_& m);
void bind_images(nb::module_& m);
void bind_linalg(nb::module_& m);
void bind_sequence(nb::module_& m);
void bind_transforms(nb::module_& m);
void bind_trees(nb::module_& m);
void bind_runtime(nb::module_& m);
void bind_dispatch(nb::module_& m);
void bind_files(nb::module_& m);
void bind_encoders(nb::module_& m);
void bind_custom(nb::module_& m);
void bind_text(nb::module_& m);
void bind_gguf(nb::module_& m);
void bind_flow(nb::module_& m);
void bind_grammars(nb::module_& m);
void bind_answer_options(nb::module_& m);
void bind_language_models(nb::module_& m);

}  // namespace rlx::python
