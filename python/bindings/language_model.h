// Language models in Python: one engine runs all answers of a model, whichever threads ask for them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/common.h"
#include "rlx/base/forks.h"
#include "rlx/generation/engine.h"
#include "rlx/generation/language_model.h"

namespace rlx::python {

// A ticket lock: threads get it in the order in which they asked for it, so a thread that steps in a loop does not
// starve the others. In the child of a fork, the tickets of threads that do not exist there are an error.
class FairLock {
 public:
  class Mine {
   public:
    explicit Mine(FairLock& turns) : lock_(turns) {
      lock_.check_forks();
      const std::uint32_t ticket = lock_.next_.fetch_add(1, std::memory_order_relaxed);
      for (;;) {
        const std::uint32_t serving = lock_.serving_.load(std::memory_order_acquire);
        if (serving == ticket) return;
        lock_.serving_.wait(serving, std::memory_order_relaxed);
      }
    }
    ~Mine() {
      lock_.serving_.fetch_add(1, std::memory_order_release);
      lock_.serving_.notify_all();
    }
    Mine(const Mine&) = delete;
    Mine& operator=(const Mine&) = delete;

   private:
    FairLock& lock_;
  };

 private:
  void check_forks() {
    if (forks_.load(std::memory_order_relaxed) == forks_so_far()) return;
    static auto& mutex = *new ProcessMutex;
    const std::lock_guard lock(mutex);
    if (forks_ == forks_so_far()) return;
    if (next_ != serving_) throw_used_at_fork("a LanguageModel");
    forks_ = forks_so_far();
  }

  std::atomic<std::uint32_t> next_{0}, serving_{0};
  std::atomic<int> forks_{fork_count()};
};

// Output of a request that its answer has not fetched yet. Guarded by the model's lock, except `dropped`.
struct Pending {
  std::deque<GenerationEvent> events;
  bool finished = false;
  std::atomic<bool> dropped{false};  // the answer is gone
};

struct PyLanguageModel {
  PyLanguageModel(LanguageModel m, std::string from, std::string usual, EngineOptions options,
                  std::optional<DraftModel> draft)
      : path(std::move(from)),
        usual_adapter(std::move(usual)),
        tokenizer(m.tokenizer),
        chat(std::move(m.chat)),
        end_tokens(std::move(m.end_tokens)),
        engine(std::move(m.decoder), m.tokenizer, options, std::move(draft)) {}

  std::string path;
  std::string usual_adapter;  // of answers that name no adapter
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat;
  std::vector<TokenId> end_tokens;
  std::vector<std::string> problems{};                // of the model's files, where it works in spite of them
  std::vector<std::string> packed_weight_problems{};  // one text for each problem with the folder of packed weights
  FairLock turns;
  Engine engine;
  std::map<RequestId, std::shared_ptr<Pending>> pending{};

  // -- callers hold the lock --

  void step() {
    for (GenerationEvent& e : engine.step()) {
      const auto at = pending.find(e.request);
      if (at == pending.end()) continue;
      const std::shared_ptr<Pending> p = at->second;
      if (e.finish != FinishReason::None) {
        p->finished = true;
        pending.erase(at);
      }
      p->events.push_back(std::move(e));
    }
  }
  // Cancels answers that are gone. If no other answer runs, their memory is freed at once.
  void forget_dropped() {
    bool any = false, others = false;
    for (const auto& [id, p] : pending) {
      if (p->dropped)
        any = engine.cancel(id) || any;
      else
        others = true;
    }
    while (any && !others && !engine.idle()) step();
  }
  DecoderModel& idle_model() {
    forget_dropped();
    return engine.idle_model();
  }
};
using ModelPtr = std::shared_ptr<PyLanguageModel>;

// An answer: an iterator over chunks of its text.
class PyAnswer {
 public:
  PyAnswer(ModelPtr model, std::shared_ptr<Pending> pending, std::vector<TokenId> prompt, BegunAnswer begun)
      : model_(std::move(model)), pending_(std::move(pending)), prompt_(std::move(prompt)), begun_(begun) {}
  ~PyAnswer() { pending_->dropped = true; }
  PyAnswer(const PyAnswer&) = delete;
  PyAnswer& operator=(const PyAnswer&) = delete;

  // The next chunk of text; none at the end. An error of the answer is thrown once, after its last chunk. Called
  // without the GIL.
  std::optional<std::string> next() {
    while (true) {
      {
        const FairLock::Mine turn(model_->turns);
        model_->forget_dropped();
        if (pending_->events.empty() && !pending_->finished && !pending_->dropped) model_->step();
        while (!pending_->events.empty()) {
          const GenerationEvent e = std::move(pending_->events.front());
          pending_->events.pop_front();
          const std::lock_guard lock(said_mutex_);
          if (e.token >= 0) tokens_.push_back(e.token);
          if (e.token >= 0) begun_ = e.begun;
          if (e.logprobs) logprobs_.push_back(*e.logprobs);
          text_ += e.text;
          if (e.finish != FinishReason::None && finish_ == FinishReason::None) finish_ = e.finish;
          if (e.problem) problem_ = e.problem, untold_ = true;
          if (!e.text.empty()) return e.text;
        }
        const std::lock_guard lock(said_mutex_);
        if (std::exchange(untold_, false)) throw Error(*problem_);
        if (pending_->finished || pending_->dropped) return std::nullopt;
      }
      check_signals();
    }
  }
  // Cancels the answer.
  void close() {
    pending_->dropped = true;
    const FairLock::Mine turn(model_->turns);
    model_->forget_dropped();
    pending_->events.clear();
    const std::lock_guard lock(said_mutex_);
    if (finish_ == FinishReason::None) finish_ = FinishReason::Cancelled;
  }

  std::string text() const {
    const std::lock_guard lock(said_mutex_);
    return text_;
  }
  std::vector<TokenId> tokens() const {
    const std::lock_guard lock(said_mutex_);
    return tokens_;
  }
  FinishReason finish() const {
    const std::lock_guard lock(said_mutex_);
    return finish_;
  }
  std::optional<Diagnostic> problem() const {
    const std::lock_guard lock(said_mutex_);
    return problem_;
  }
  const std::vector<TokenId>& prompt() const { return prompt_; }
  std::vector<TokenLogprobs> logprobs() const {
    const std::lock_guard lock(said_mutex_);
    return logprobs_;
  }
  // The conversation so far, with the state of the answer.
  Conversation conversation() const {
    Conversation out{sequence()};
    const std::lock_guard lock(said_mutex_);
    out.answer = begun_;
    return out;
  }
  const ModelPtr& model() const { return model_; }
  // The tokens that a prompt starts with if it continues this answer.
  std::vector<TokenId> sequence() const {
    const std::lock_guard lock(said_mutex_);
    std::vector<TokenId> out = prompt_;
    out.insert(out.end(), tokens_.begin(), tokens_.end() - (finish_ == FinishReason::StopToken ? 1 : 0));
    return out;
  }

  // Ctrl-C between two steps cancels the answer. The model is not locked while the handler of Python runs. Called
  // without the GIL.
  void check_signals() {
    bool raised = false;
    {
      const nb::gil_scoped_acquire gil;
      raised = PyErr_CheckSignals() != 0;
      if (!raised) return;
    }
    close();
    const nb::gil_scoped_acquire gil;
    throw nb::python_error();
  }

 private:
  ModelPtr model_;
  std::shared_ptr<Pending> pending_;
  std::vector<TokenId> prompt_;
  mutable ObjectMutex said_mutex_{"an Answer"};
  std::string text_;
  std::vector<TokenId> tokens_;
  std::vector<TokenLogprobs> logprobs_;
  BegunAnswer begun_;
  FinishReason finish_ = FinishReason::None;
  std::optional<Diagnostic> problem_;
  bool untold_ = false;
};

template <class F>
auto with_lock(PyLanguageModel& m, F&& f) {
  const nb::gil_scoped_release free;
  const FairLock::Mine turn(m.turns);
  return f();
}

/// Runs an answer to its end. Called with the GIL.
void finish(PyAnswer& a);
/// The architecture of a model as a dict.
nb::dict config_dict(const DecoderConfig& c);
/// Loads a model. `given` has every keyword of rlx.models.load.
ModelPtr loaded_model(const std::filesystem::path& path, nb::dict given);

void bind_answers(nb::module_& m);

}  // namespace rlx::python
