// A timeline of what compiles and runs did, when and on which thread: Chrome trace events, which Perfetto opens.
//
//   auto trace = std::make_shared<Trace>("run.json");
//   Session session;
//   session.with_trace(trace);         // what it compiles, and runs of that, are recorded
//   trace->flush();                    // also at its end, and when the program exits
//
// Nobody asks for a trace but once a run or pass: what is not traced costs nothing. What is goes to memory of the
// thread that records, 24 bytes an event, without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rlx {

/// A timeline. Any number of sessions and threads may record; it lives as long as somebody holds it.
class Trace {
 public:
  /// Kept in memory, for json().
  Trace();
  /// Written to `path` by flush(), at its end and by exit(). BadFile when nothing can be written there. A process that
  /// was forked off records for itself and writes `path`.PID, when it records anything.
  explicit Trace(std::string path);
  /// What it cannot write then is a warning on the standard error.
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// Writes all that was recorded so far, in place of what the file held. BadFile naming it and the reason.
  void flush();
  /// The same where there is something new; a failure is a warning on the standard error.
  void flush_rest() noexcept;
  /// What flush() would write.
  std::string json() const;

  /// The number of a name: `category` (compile, weights, run, step) and `args`, JSON members such as
  /// "\"value\":\"%3\"", belong to it. Takes a lock.
  std::uint32_t name(std::string_view category, std::string_view text, std::string_view args = {});
  /// The number of a track of its own for what the calling threads do on a device that is not theirs.
  std::uint32_t track(std::string_view device);
  /// Records that the calling thread did this from begin to end (now_ns). Allocates once in 2048 events; beyond 4
  /// million events a thread's are counted and lost. The thread may move the end on; null: there is no such event.
  std::atomic<std::int64_t>* record(std::uint32_t name, std::int64_t begin_ns, std::int64_t end_ns,
                                    std::uint32_t track = 0) noexcept;
  /// What its row is called; the first name stays.
  void name_thread(std::string_view text);
  /// Tells traces apart, also one from another that lay at its address.
  std::uint64_t serial() const;

  /// ns of the monotonic clock.
  static std::int64_t now_ns();
  /// The trace that the calling thread records into, or null.
  static Trace* current() noexcept;

 private:
  friend class TraceScope;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// While it lives the calling thread records into `trace`; null leaves things as they are.
class TraceScope {
 public:
  explicit TraceScope(Trace* trace) noexcept : set_(trace != nullptr) {
    if (set_) before_ = exchange(trace);
  }
  ~TraceScope() {
    if (set_) exchange(before_);
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  static Trace* exchange(Trace* trace) noexcept;  // gives the one before
  bool set_;
  Trace* before_ = nullptr;
};

/// Records its own life, where the calling thread records anything.
class TraceSpan {
 public:
  explicit TraceSpan(std::string_view category, std::string_view text, std::string_view detail = {}) noexcept
      : trace_(Trace::current()) {
    if (trace_) begin(category, text, detail);
  }
  /// The same by the number of the name, for what happens often: no lock. Null records nothing.
  TraceSpan(Trace* trace, std::uint32_t name, std::uint32_t track = 0) noexcept
      : trace_(trace), name_(name), track_(track), begin_(trace ? Trace::now_ns() : 0) {}
  ~TraceSpan() {
    if (trace_) trace_->record(name_, begin_, Trace::now_ns(), track_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  void begin(std::string_view category, std::string_view text, std::string_view detail) noexcept;
  Trace* trace_;
  std::uint32_t name_ = 0, track_ = 0;
  std::int64_t begin_ = 0;
};

}  // namespace rlx
