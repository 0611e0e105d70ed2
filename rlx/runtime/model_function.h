// A model as a function that builds its graph, compiled once for each device, precision and size that it is used with.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/compiler/precision.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/session.h"

namespace rlx {

/// The properties in which the programs of one model differ.
struct ModelKey {
  DeviceId device{};                     // as for Session
  Precision precision = Precision::F32;  // of matmuls
  SymbolBinding dims{};                  // values of symbols of the graph; other symbols stay dynamic
  friend bool operator==(const ModelKey&, const ModelKey&) = default;
};

/// A model that many parts of a process use: `inline const rlx::ModelFunction net("net", [](rlx::Graph& g) {...})`,
/// also in a header. Its graph is built and compiled when a program is first requested. The program is then kept, with
/// its states. Weights are set once for all programs, including those compiled later. Safe to use from many threads.
class ModelFunction {
 public:
  /// Declares inputs and params on the graph and returns the outputs.
  using Build = std::function<std::vector<Expr>(Graph& g)>;

  /// Errors: InvalidArgument for an empty name or function.
  ModelFunction(std::string name, Build build);
  ~ModelFunction();
  ModelFunction(const ModelFunction&) = delete;
  ModelFunction& operator=(const ModelFunction&) = delete;

  const std::string& name() const { return name_; }
  /// Builds the graph anew. Errors: what the function throws; InvalidArgument when it returns no outputs.
  Graph build_graph() const;

 private:
  struct Entry;

 public:
  /// A program in exclusive use by one thread. The next thread waits until this object is gone.
  class Program {
   public:
    Program(Program&&) noexcept;
    Program& operator=(Program&&) = delete;
    ~Program();
    CompiledGraph& operator*() const;
    CompiledGraph* operator->() const { return &**this; }

   private:
    friend class ModelFunction;
    explicit Program(std::shared_ptr<Entry> entry);
    std::shared_ptr<Entry> entry_;
  };
  /// The program for `key`. Errors: those of build_graph, Session and compile, after which the next call tries again;
  /// InvalidArgument when this thread already holds that program.
  Program compiled(const ModelKey& key = {}) const;
  /// One run: CompiledGraph::run_typed.
  std::vector<Tensor> operator()(const NamedTensors& inputs, const ModelKey& key = {}) const;

  /// Sets the weights of all programs, in the dtypes of their params, when each is next used. The loader stays alive.
  /// Errors are thrown then, by `compiled`: those of CompiledGraph::load_params, once. The weights are dropped after
  /// such an error.
  void load_params(std::shared_ptr<const WeightLoader> loader, LoadMode mode = LoadMode::Strict) const;
  /// The same for one weight. The last value set counts.
  void set_param(std::string_view name, const Tensor& value) const;
  /// The number of programs that are kept.
  std::size_t num_programs() const;
  /// Drops all programs and their states. The weights stay.
  void forget_programs() const;

 private:
  using Setter = std::function<void(CompiledGraph&)>;
  void give(Setter set, const std::string& param) const;

  std::string name_;
  Build build_;
  struct Programs;
  std::unique_ptr<Programs> programs_;
};

}  // namespace rlx
