// The programs of a model by key, each with a lock, and the weights that all of them get.
#include "rlx/runtime/model_function.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "rlx/base/forks.h"
#include "rlx/error.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {

struct ModelFunction::Entry {
  ModelKey key;
  ObjectMutex busy{"the program of a ModelFunction"};
  std::atomic<std::thread::id> owner{};  // the thread that holds `busy`
  std::optional<CompiledGraph> program{};
  std::atomic<bool> made = false;  // `program` is set; read by threads that do not hold `busy`
  std::uint64_t given = 0;         // number of the last weights that it received
};

struct ModelFunction::Programs {
  ObjectMutex lock{"a ModelFunction"};  // guards the members below; never held while a program is built
  std::vector<std::shared_ptr<Entry>> entries{};
  std::map<std::uint64_t, Setter> weights{};  // in the order in which they were set
  std::map<std::string, std::uint64_t> params{};
  std::uint64_t last = 0;
};

ModelFunction::ModelFunction(std::string name, Build build)
    : name_(std::move(name)), build_(std::move(build)), programs_(new Programs) {
  if (name_.empty()) throw Error(ErrorCode::InvalidArgument, "a ModelFunction has no name");
  if (!build_)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the model '", name_, "' has no function that builds its graph"));
}
ModelFunction::~ModelFunction() = default;

Graph ModelFunction::build_graph() const {
  Graph g(name_);
  const std::vector<Expr> outputs = build_(g);
  if (outputs.empty())
    throw Error(ErrorCode::InvalidArgument, concat_text("the function of the model '", name_, "' returns no outputs"),
                "return the values that the model computes");
  g.set_outputs(outputs);
  return g;
}

ModelFunction::Program::Program(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {
  if (entry_->owner.load() == std::this_thread::get_id())
    throw Error(ErrorCode::InvalidArgument, "this thread already holds the program of the model",
                "destroy the first ModelFunction::Program before taking another");
  entry_->busy.lock();
  entry_->owner = std::this_thread::get_id();
}
ModelFunction::Program::Program(Program&&) noexcept = default;
ModelFunction::Program::~Program() {
  if (!entry_) return;
  entry_->owner = std::thread::id();
  entry_->busy.unlock();
}
CompiledGraph& ModelFunction::Program::operator*() const {
  if (!entry_) throw Error(ErrorCode::InvalidArgument, "a ModelFunction::Program was used after it was moved from");
  return *entry_->program;
}

ModelFunction::Program ModelFunction::compiled(const ModelKey& key) const try {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard held(programs_->lock);
    for (const std::shared_ptr<Entry>& e : programs_->entries)
      if (e->key == key) entry = e;
    if (!entry) {
      entry = std::make_shared<Entry>();
      entry->key = key;
      programs_->entries.push_back(entry);
    }
  }
  Program out(entry);
  if (!entry->program) {
    CompileOptions options;
    options.dim_binding = key.dims;
    Session session(key.device);
    session.with_precision(key.precision);
    CompiledGraph made = session.compile_with(build_graph(), std::move(options));
    entry->program.emplace(std::move(made));
    entry->made = true;
  }
  for (;;) {
    std::uint64_t number = 0;
    Setter next;
    {
      const std::lock_guard held(programs_->lock);
      const auto at = programs_->weights.upper_bound(entry->given);
      if (at == programs_->weights.end()) break;
      number = at->first, next = at->second;
    }
    entry->given = number;
    try {
      next(*entry->program);
    } catch (...) {  // reported once; otherwise the model could never be used again
      const std::lock_guard held(programs_->lock);
      programs_->weights.erase(number);
      throw;
    }
  }
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("ModelFunction::compiled");
}

std::vector<Tensor> ModelFunction::operator()(const NamedTensors& inputs, const ModelKey& key) const {
  return compiled(key)->run_typed(inputs);
}

// `param`: the setter sets only this param, so an earlier value of it is dropped.
void ModelFunction::give(Setter set, const std::string& param) const {
  const std::lock_guard held(programs_->lock);
  const std::uint64_t number = ++programs_->last;
  programs_->weights.emplace(number, std::move(set));
  if (param.empty()) return;
  std::uint64_t& before = programs_->params[param];
  programs_->weights.erase(before);
  before = number;
}

void ModelFunction::load_params(std::shared_ptr<const WeightLoader> loader, LoadMode mode) const {
  if (!loader)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("load_params of the model '", name_, "': no loader was given (a null pointer)"));
  give([loader = std::move(loader), mode](CompiledGraph& program) { program.load_params(loader, mode); }, {});
}

void ModelFunction::set_param(std::string_view name, const Tensor& value) const {
  const std::string param(name);
  give([param, value](CompiledGraph& program) { program.set_param(param, value); }, param);
}

std::size_t ModelFunction::num_programs() const {
  const std::lock_guard held(programs_->lock);
  std::size_t count = 0;
  for (const std::shared_ptr<Entry>& e : programs_->entries) count += e->made;
  return count;
}

void ModelFunction::forget_programs() const {
  const std::lock_guard held(programs_->lock);
  programs_->entries.clear();
}

}  // namespace rlx
