// A timeline of compiles and runs on their threads: Chrome trace events, which Perfetto opens.
//
//   auto trace = std::make_shared<Trace>("run.json");
//   Session session;
//   session.with_trace(trace);         // records its compiles, and the runs of their programs
//   trace->flush();                    // also runs in the destructor, and when the program exits
//
// Code asks for the trace only once per run or pass, so an untraced run costs nothing. A traced event goes to memory of
// the recording thread, 24 bytes per event, without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rlx {

/// A timeline. Any number of sessions and threads may record into it. It lives as long as it has an owner.
class Trace {
 public:
  /// Kept in memory, for json().
  Trace();
  /// Written to `path` by flush(), by the destructor and by exit(). BadFile when the file cannot be written. A forked
  /// process records separately and writes `path`.PID if it records anything.
  explicit Trace(std::string path);
  /// A failure to write is a warning on standard error.
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// Writes all events recorded so far, replacing the file's content. BadFile names the file and the reason.
  void flush();
  /// The same if there are new events. A failure is a warning on standard error.
  void flush_rest() noexcept;
  /// The text that flush() would write.
  std::string json() const;

  /// Registers a name and returns its number. The name has a `category` (compile, weights, run, step) and `args`, which
  /// are JSON members such as "\"value\":\"%3\"". Takes a lock.
  std::uint32_t name(std::string_view category, std::string_view text, std::string_view args = {});
  /// The number of a separate track, for work of the calling threads on a device other than the host.
  std::uint32_t track(std::string_view device);
  /// Records an event of the calling thread from begin to end (now_ns). Allocates once in 2048 events. Beyond 4 million
  /// events per thread, events are counted but dropped. The thread may move the end through the result. Null: the event
  /// was dropped.
  std::atomic<std::int64_t>* record(std::uint32_t name, std::int64_t begin_ns, std::int64_t end_ns,
                                    std::uint32_t track = 0) noexcept;
  /// Names the thread in the timeline. The first name stays.
  void name_thread(std::string_view text);
  /// A number that no other trace of the process has, whereas a later trace may have the same address.
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

/// During its lifetime the calling thread records into `trace`. Null changes nothing.
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
  static Trace* exchange(Trace* trace) noexcept;  // returns the previous one
  bool set_;
  Trace* before_ = nullptr;
};

/// Records its own lifetime, if the calling thread records into a trace.
class TraceSpan {
 public:
  explicit TraceSpan(std::string_view category, std::string_view text, std::string_view detail = {}) noexcept
      : trace_(Trace::current()) {
    if (trace_) begin(category, text, detail);
  }
  /// The same with the number of the name, for frequent events: takes no lock. Null records nothing.
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
