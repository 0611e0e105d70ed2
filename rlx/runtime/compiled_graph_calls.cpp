// Calls of a CompiledGraph from any threads: which instance serves a run, and what a change has to wait for.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "rlx/runtime/compiled_graph_impl.h"
#include "rlx/threads/thread_pool.h"

namespace rlx {

namespace {
constexpr std::uint64_t kNever = ~std::uint64_t{0};  // the `changes` of an instance without weights
}  // namespace

const void* this_thread() {
  static thread_local const char here = 0;
  return &here;
}

CompiledGraph::Impl::Call::Call(Impl& object, Use use)
    : object_(object), at_(&object), purpose_(thread_purpose()), outer_(purpose_) {
  if (!object.gate.try_enter(use, entry_)) entry_ = object.gate.enter(use, object.code->source.name(), where());
  try {
    // Results of run_slots stay until the next run of their thread, so other threads run elsewhere.
    if (use == Use::AnyInstance && entry_.place == CallGate::Place::Own && !object.gate.serial()) {
      const void* const holder = object.results_of.load(std::memory_order_relaxed);
      if (holder && holder != this_thread()) {
        const CallGate::Entry own = entry_;
        entry_ = object.gate.enter(use, object.code->source.name(), CallGate::Inside::Elsewhere);
        object.gate.leave(own);
      }
    }
    if (entry_.place == CallGate::Place::Spare) at_ = object.take_spare();
    if (!object.states.empty() && entry_.place == CallGate::Place::Own) lock_states();
  } catch (...) {
    object.gate.leave(entry_);
    throw;
  }
  purpose_ = this;
}

CompiledGraph::Impl::Call::~Call() {
  purpose_ = outer_;
  if (holds_states_)
    for (StateCell* cell : object_.cells_in_order) cell->turn.unlock();
  if (entry_.place == CallGate::Place::Change) {
    ++object_.changes;
    object_.note_what_runs_keep();
  }
  if (at_ != &object_) object_.give_back(at_);
  object_.gate.leave(entry_);
}

bool CompiledGraph::Impl::Call::is_inside(const Impl& object) {
  for (const auto* c = static_cast<const Call*>(thread_purpose()); c; c = static_cast<const Call*>(c->outer_))
    if (&c->object_ == &object) return true;
  return false;
}

// Waits for the calls of other threads. What a thread of the parent process was using is leaked in the child. A
// callback that destroys or replaces the program that runs it would wait for itself: that program goes to a list, and
// is destroyed with a later one when its run has ended.
void CompiledGraph::Impl::retire(std::unique_ptr<Impl> impl) noexcept {
  static auto& mutex = *new ProcessMutex;
  static auto& retired = *new std::unique_ptr<Impl>;
  static std::atomic<bool> any{false};
  if (!impl && !any.load(std::memory_order_relaxed)) return;
  std::unique_ptr<Impl> ended;  // destroyed without the lock: weights and callbacks are foreign code
  const auto push = [](std::unique_ptr<Impl>& list, std::unique_ptr<Impl> item) {
    item->next_retired = std::exchange(list, nullptr);
    list = std::move(item);
  };
  if (impl && Call::is_inside(*impl)) {
    const std::lock_guard lock(mutex);
    push(retired, std::move(impl));
    any.store(true, std::memory_order_relaxed);
    return;
  }
  if (impl && !impl->gate.close()) (void)impl.release();
  if (!any.load(std::memory_order_relaxed)) return;
  {
    const std::lock_guard lock(mutex);
    std::unique_ptr<Impl> list = std::move(retired);
    while (list) {
      std::unique_ptr<Impl> item = std::move(list);
      list = std::move(item->next_retired);
      const bool has_ended = item->gate.empty();
      push(has_ended ? ended : retired, std::move(item));
    }
    any.store(retired != nullptr, std::memory_order_relaxed);
  }
  while (ended) {
    const std::unique_ptr<Impl> item = std::move(ended);
    ended = std::move(item->next_retired);
  }
}

CallGate::Inside CompiledGraph::Impl::Call::where() const {
  constexpr int kMostInside = 64;
  int calls = 0;
  CallGate::Inside found = CallGate::Inside::No;
  for (const auto* c = static_cast<const Call*>(outer_); c; c = static_cast<const Call*>(c->outer_)) {
    if (&c->object_ != &object_) continue;
    if (++calls == kMostInside)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("graph '", object_.code->source.name(), "' runs itself without end: ", calls,
                              " of its runs are inside each other"),
                  "a callback or custom kernel that runs its own program must stop doing so at some point");
    const bool own = c->entry_.place == CallGate::Place::Own || c->entry_.place == CallGate::Place::Change;
    if (own) found = CallGate::Inside::AtOwn;
    if (found == CallGate::Inside::No) found = CallGate::Inside::Elsewhere;
  }
  return found;
}

// Other objects may share the states. All take them in the order of their addresses, and after their gate.
void CompiledGraph::Impl::Call::lock_states() {
  const auto& own = object_.states;
  if (std::none_of(own.begin(), own.end(), [](const auto& s) { return s.use_count() > 1; })) return;
  for (const auto* c = static_cast<const Call*>(outer_); c; c = static_cast<const Call*>(c->outer_))
    for (const auto& s : c->holds_states_ ? c->object_.states : decltype(object_.states)())
      if (std::find(own.begin(), own.end(), s) != own.end())
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("graph '", object_.code->source.name(), "' is called from inside a run of graph '",
                                c->object_.code->source.name(), "', with which it shares states"),
                    "call it after that run");
  std::size_t held = 0;
  try {
    for (StateCell* cell : object_.cells_in_order) cell->turn.lock(), ++held;
  } catch (...) {
    for (std::size_t i = 0; i < held; ++i) object_.cells_in_order[i]->turn.unlock();
    throw;
  }
  holds_states_ = true;
}

CompiledGraph::Impl::~Impl() {
  for (std::atomic<Impl*>& place : idle) delete place.load(std::memory_order_relaxed);
}

CompiledGraph::Impl* CompiledGraph::Impl::take_spare() {
  std::unique_ptr<Impl> spare;
  for (std::atomic<Impl*>& place : idle) {
    if (!place.load(std::memory_order_relaxed)) continue;
    spare.reset(place.exchange(nullptr, std::memory_order_acquire));
    if (spare) break;
  }
  if (!spare) {
    spare = std::make_unique<Impl>(code);
    spare->changes = kNever;
  }
  if (spare->changes != changes) {
    spare->extent = extent;
    spare->extent_rows = extent_rows;
    spare->handles = handles;
    spare->weights = weights;
    spare->register_programs();
    ++spare->binding_generation;
    spare->changes = changes;
  }
  return spare.release();
}

void CompiledGraph::Impl::give_back(Impl* spare) noexcept {
  for (std::atomic<Impl*>& place : idle) {
    Impl* none = nullptr;
    if (place.compare_exchange_strong(none, spare, std::memory_order_release, std::memory_order_relaxed)) return;
  }
  delete spare;
}

void CompiledGraph::Impl::release_spare_weights() {
  for (std::atomic<Impl*>& place : idle) {
    Impl* const spare = place.load(std::memory_order_acquire);
    if (!spare) continue;
    spare->weights.reset();
    for (auto& s : spare->shapes) s->weights.reset(), s->binding_generation = 0;
    spare->changes = kNever;
  }
}

void CompiledGraph::Impl::note_what_runs_keep() {
  cells_in_order.clear();
  for (const auto& s : states) cells_in_order.push_back(s.get());
  std::sort(cells_in_order.begin(), cells_in_order.end());
  cells_in_order.erase(std::unique(cells_in_order.begin(), cells_in_order.end()), cells_in_order.end());
  gate.set_serial(!states.empty() || has_output_handles());
}

}  // namespace rlx
