// A model as a function: what builds its graph, compiled once for each device, precision and size that it is used with.
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

/// What the programs of one model differ in.
struct ModelKey {
  DeviceId device{};                     // as of Session
  Precision precision = Precision::F32;  // of matrix products
  SymbolBinding dims{};                  // values of symbols of the graph; those left out stay open
  friend bool operator==(const ModelKey&, const ModelKey&) = default;
};

/// A model that many parts of a process use: `inline const rlx::ModelFunction net("net", [](rlx::Graph& g) {...})`, in
/// a header too. Its graph is built, and compiled, when a program is first asked for; then the program is kept, with
/// its states. Weights are set once for all programs, those compiled later among them. May be used from many threads.
class ModelFunction {
 public:
  /// Declares inputs and params on the graph and gives the outputs.
  using Build = std::function<std::vector<Expr>(Graph& g)>;

  /// Errors: InvalidArgument for an empty name or function.
  ModelFunction(std::string name, Build build);
  ~ModelFunction();
  ModelFunction(const ModelFunction&) = delete;
  ModelFunction& operator=(const ModelFunction&) = delete;

  const std::string& name() const { return name_; }
  /// The graph, built anew. Errors: what the function throws; InvalidArgument where it gives no outputs.
  Graph build_graph() const;

 private:
  struct Entry;

 public:
  /// A program while one thread uses it; the next one waits until this object is gone.
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
  /// InvalidArgument where this thread holds that program already.
  Program compiled(const ModelKey& key = {}) const;
  /// One run of it: CompiledGraph::run_typed.
  std::vector<Tensor> operator()(const NamedTensors& inputs, const ModelKey& key = {}) const;

  /// Gives all programs their weights, in the dtypes of their params, when they are next used; the loader stays alive.
  /// Errors come then, from `compiled`: those of CompiledGraph::load_params, once; the weights are forgotten with them.
  void load_params(std::shared_ptr<const WeightLoader> loader, LoadMode mode = LoadMode::Strict) const;
  /// The same of one weight; the last value given counts.
  void set_param(std::string_view name, const Tensor& value) const;
  /// How many programs are kept.
  std::size_t num_programs() const;
  /// Lets all of them go, and their states; the weights stay.
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
