// Shared by all files of the extension: the Python types of tensors, graphs and values, and conversions to them.
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

/// The Python class of dtypes. Each dtype has one object, such as `rlx.float32`.
struct PyDType {
  DType type;
};
/// The name of the dtype in NumPy, ml_dtypes and JAX: "float32", "bfloat16", "float8_e4m3fn".
std::string_view numpy_name(DType t);
/// The Python object of a dtype.
nb::object dtype_object(DType t);
/// The dtype that `h` names: a dtype, its name ("f32", "float32"), a NumPy dtype or scalar type, or Python's bool, int,
/// float or complex. Returns none for anything else.
std::optional<DType> dtype_or_none(nb::handle h);
/// The same. Throws TypeError for anything else; the message begins with `what`.
DType dtype_from(nb::handle h, const char* what = "dtype");

/// An immutable array that shares the bytes of a tensor. `weak`: it was made from Python scalars alone, so in
/// arithmetic it takes the dtype of the other operand.
struct PyArray {
  Tensor tensor;
  bool weak = false;
};
nb::object array_object(Tensor t, bool weak = false);
/// Throws InvalidArgument for a donated array, which has no data any more.
bool is_donated(const PyArray& a);
void check_not_donated(const PyArray& a);
/// Copies a tensor to the host. Other Python threads run meanwhile.
Tensor on_host(Tensor t);
/// The path of a readable file or folder. Throws Python's OSError, with the path, for others.
std::string existing(const std::filesystem::path& path);
/// Parses "cpu" or "cuda:1". Throws DeviceUnavailable for a name of no device.
DeviceId device_from(const std::string& text);

/// A graph under construction in Python. It is shared, because values and bodies point to it.
struct PyGraph {
  explicit PyGraph(std::string name) : graph(std::make_unique<Graph>(std::move(name))) {}
  explicit PyGraph(Graph g) : graph(std::make_unique<Graph>(std::move(g))) {}
  std::unique_ptr<Graph> graph;  // null after the graph was compiled
  Graph& get() const;
};

/// A value of a graph that is built by hand or of a function under trace.
struct PyValue {
  Expr expr;
  bool weak = false;
  SourceLoc loc;           // the user's line that made it, for errors about values that outlive their trace
  std::int64_t trace = 0;  // number of the trace that made it; 0: a graph built by hand
  nb::object number{};  // the Python number of a weak constant; a change of dtype starts from it and not from the value
};

// -- the user's line --
/// The line of the innermost Python frame outside of this package. The file name lives as long as the process.
SourceLoc user_line();
/// Sets the user's line for calls into C++ that build several nodes. While the object lives, nodes and errors of
/// library functions refer to that line.
class UserCall {
 public:
  SourceLoc loc() const { return loc_; }

 private:
  SourceLoc loc_ = user_line();
  LineOfCall line_{loc_};
};
/// Sets the folder of this package; frames of files below it are skipped by user_line.
void set_package_folder(const std::string& folder);
/// The name of a file, stored for the life of the process.
const char* lasting_name(std::string_view file);

// -- errors --
/// Stores an exception of Python code and returns a diagnostic that stands for it. Raising the diagnostic as an error
/// raises the stored exception.
Diagnostic kept_exception(nb::python_error& e, const std::string& what);
[[noreturn]] inline void raise(ErrorCode code, std::string message, std::string hint = {}) {
  throw Error(Diagnostic{code, std::move(message), built_at(user_line()), std::move(hint)});
}

/// Gives a DeprecationWarning, once in a process, that a public name was renamed. `level` selects the frame that the
/// warning points to: 1 is the current frame, 2 its caller.
void warn_renamed(const std::string& old_name, const std::string& new_name, int level = 1);

/// The text of an object in messages, such as "'yes' (str)". Long texts are truncated.
std::string described(nb::handle h);
/// The name of a C++ parameter type in messages.
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
/// Converts a Python object to C++. Throws TypeError, which names `what`, for an object of another type.
template <class T>
T cast_as(nb::handle h, std::string_view what) {
  try {
    return nb::cast<T>(h);
  } catch (const nb::cast_error&) {
    raise(ErrorCode::DTypeMismatch, concat_text(what, " must be ", taken_as<T>(), ", got ", described(h)));
  }
}

// -- arrays --
/// Converts an array-like object to a tensor. The bytes are shared if `share` is set and they are dense and aligned,
/// else copied. Error messages begin with `what`.
Tensor tensor_from(nb::handle h, const char* what, bool share = true, std::optional<DType> dtype = std::nullopt);
/// True for objects that `tensor_from` converts without NumPy: rlx arrays, the buffer protocol, DLPack.
bool is_array_like(nb::handle h);
/// A Python bool, int, float or complex as a weakly typed scalar. Returns none for other objects, NumPy scalars among
/// them.
std::optional<Tensor> weak_scalar(nb::handle h);
/// Holds the buffer of an array; the format of the buffer gives the dtype.
class BufferHold {
 public:
  BufferHold() = default;
  BufferHold(const BufferHold&) = delete;
  BufferHold& operator=(const BufferHold&) = delete;
  ~BufferHold();
  /// Requests the buffer of `h`. Returns false, without a Python error, if there is none.
  bool take(nb::handle h, bool writable = false);
  /// The dtype of the elements. Returns none for a format without a dtype.
  std::optional<DType> dtype() const;
  bool dense() const;
  const Py_buffer& view() const { return view_; }

 private:
  Py_buffer view_{};
  bool held_ = false;
};

/// A dim as a Python int, or as an rlx.Dim if it is symbolic.
nb::object dim_object(const Dim& d);
Dim dim_from(nb::handle h, const char* what = "a dimension");
Dims dims_from(nb::handle h, const char* what = "shape");
nb::tuple dims_object(const Dims& dims);
nb::tuple dims_object(std::span<const std::int64_t> dims);

// -- tracing --
nb::object value_object(Expr e, SourceLoc loc, bool weak = false);
/// The graph of a value. Throws InvalidArgument, which names the line that made the value, if the graph is gone.
Graph& graph_of(const PyValue& v);
/// The graph that new nodes go to: that of the innermost function under trace. Null outside of a trace.
Graph* traced_graph();
/// Converts an operand to a value of the graph. Arrays and numbers become constants.
Expr operand_from(Graph& g, nb::handle h, SourceLoc loc, bool* weak = nullptr, std::optional<DType> beside = {});

// -- one function for each file of bindings --
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
