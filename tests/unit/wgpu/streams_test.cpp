// Streams on the single queue of a device, with the fake library: results that are never read, streams that wait for
// each other, threads.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "rlx/device/device.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/wgpu/stand_in_backend.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;
using test::StandIn;
using test::StandInFault;

std::shared_ptr<OpenDevice> opened() { return open_device(require_backend(Device::Vulkan), Device::Vulkan); }

// Copies a number through the device to `to`; the buffers in between are released before it arrives.
void send(OpenDevice& device, Stream& stream, std::int32_t n, std::int32_t& to) {
  const std::shared_ptr<Buffer> a = device.allocate(4, BufferUse::Values), b = device.allocate(4, BufferUse::Values);
  stream.upload(std::as_bytes(std::span(&n, 1)), BufferView(*a, 0, 4));
  stream.copy(BufferView(*a, 0, 4), BufferView(*b, 0, 4));
  stream.download(BufferView(*b, 0, 4), std::as_writable_bytes(std::span(&to, 1)));
}

}  // namespace

TEST_CASE("wgpu: 200,000 results that nobody waited for, then somebody for the last") {
  const StandIn stand_in;
  const std::size_t before = stand_in.control().live();
  const int n = test::repetitions(200000);
  std::vector<std::int32_t> out(static_cast<std::size_t>(n), -1);
  {
    const std::shared_ptr<OpenDevice> device = opened();
    const std::shared_ptr<Stream> stream = device->stream();
    const std::shared_ptr<Buffer> buffer = device->allocate(4, BufferUse::Values);
    stand_in.control().lazy(true);
    const auto send_all = [&] {
      for (std::int32_t i = 0; i < n; ++i) {
        stream->upload(std::as_bytes(std::span(&i, 1)), BufferView(*buffer, 0, 4));  // submits the one before
        stream->download(BufferView(*buffer, 0, 4), std::as_writable_bytes(std::span(&out[std::size_t(i)], 1)));
      }
      return stream->record();
    };
    const Event all = send_all();
    CHECK_FALSE(all.ready());
    CHECK(std::count(out.begin(), out.end(), -1) == n);
    all.wait();
    CHECK(all.ready());
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += out[std::size_t(i)] != i;
    CHECK(wrong == 0);
    const Event never = send_all();
    CHECK_FALSE(never.ready());
  }
  CHECK(stand_in.control().live() == before);
  CHECK(StandIn::broken() == "");
}

TEST_CASE("wgpu: streams that wait for each other, again and again, bring everything in order") {
  const StandIn stand_in;
  const std::shared_ptr<OpenDevice> device = opened();
  const std::shared_ptr<Stream> a = device->stream(), b = device->stream();
  stand_in.control().lazy(true);
  std::int32_t out = -1, last = -1;
  const int n = test::repetitions(20000);
  for (int i = 0; i < n; ++i) {
    send(*device, *a, 2 * i, out);
    b->wait(a->record());
    send(*device, *b, 2 * i + 1, out);
    a->wait(b->record());
  }
  send(*device, *a, 7, last);
  const Event end = a->record();
  CHECK_FALSE(end.ready());
  end.wait();
  CHECK(out == 2 * n - 1);
  CHECK(last == 7);
  CHECK(StandIn::broken() == "");
}

TEST_CASE("wgpu: a point outlives its stream and its device, and is waited for all the same") {
  const StandIn stand_in;
  const std::size_t before = stand_in.control().live();
  std::int32_t out = -1;
  Event event;
  {
    const std::shared_ptr<OpenDevice> device = opened();
    const std::shared_ptr<Stream> stream = device->stream();
    send(*device, *stream, 5, out);
    event = stream->record();
  }
  event.wait();
  CHECK(out == 5);
  event = {};
  CHECK(stand_in.control().live() == before);
}

TEST_CASE("wgpu: results for the host that nobody read do not hold the device") {
  const StandIn stand_in;
  const std::size_t before = stand_in.control().live();
  {
    const std::shared_ptr<OpenDevice> device = opened();
    const std::shared_ptr<Stream> stream = device->stream();
    const std::shared_ptr<Buffer> from = device->allocate(64, BufferUse::Values),
                                  to = device->allocate(64, BufferUse::Readback);
    stream->copy(BufferView(*from, 0, 64), BufferView(*to, 0, 64));
    (void)stream->record();
  }
  CHECK(stand_in.control().live() == before);
}

TEST_CASE("wgpu: threads with streams of their own that wait for each other's points") {
  const StandIn stand_in;
  const std::shared_ptr<OpenDevice> device = opened();
  constexpr int kThreads = 4;
  std::mutex mutex;
  Event shared;  // an event of any stream
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const std::shared_ptr<Stream> stream = device->stream();
      std::vector<std::int32_t> out(8, -1);
      for (int i = 0; i < test::repetitions(400); ++i) {
        Event other;
        {
          const std::lock_guard lock(mutex);
          other = shared;
        }
        stream->wait(other);
        for (std::size_t k = 0; k < out.size(); ++k) send(*device, *stream, t * 100000 + i * 10 + int(k), out[k]);
        const Event done = stream->record();
        {
          const std::lock_guard lock(mutex);
          shared = done;
        }
        if (i % 3 == 0)
          while (!done.ready()) std::this_thread::yield();
        if (i % 2 == 0) other.wait();
        done.wait();
        wrong += done.failed() || !done.ready();
        for (std::size_t k = 0; k < out.size(); ++k) wrong += out[k] != t * 100000 + i * 10 + int(k);
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(device->memory().used() == 0);
  CHECK(StandIn::broken() == "");
}

TEST_CASE("wgpu: a loss reaches every thread, and nobody's memory is written after its wait has thrown") {
  const StandIn stand_in;
  const std::size_t before = stand_in.control().live();
  for (const std::size_t nth : {1U, 30U, 200U}) {
    CAPTURE(nth);
    const std::shared_ptr<OpenDevice> device = opened();
    stand_in.control().fault("DevicePoll", nth, StandInFault::Silent, 1);
    std::atomic<int> told{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        try {
          const std::shared_ptr<Stream> stream = device->stream();
          for (;;) {
            auto out = std::make_unique<std::int32_t>(-1);  // gone when a wait throws
            send(*device, *stream, 3, *out);
            stream->record().wait();
          }
        } catch (const Error& e) {
          told += e.code() == ErrorCode::DeviceLost;
        }
      });
    for (std::thread& t : threads) t.join();
    CHECK(told == 3);
    CHECK(device->lost());
    const std::shared_ptr<OpenDevice> fresh = opened();
    CHECK(fresh != device);
    const std::shared_ptr<Stream> stream = fresh->stream();
    std::int32_t out = -1;
    send(*fresh, *stream, 4, out);
    stream->record().wait();
    CHECK(out == 4);
  }
  CHECK(stand_in.control().live() == before);
  CHECK(StandIn::broken() == "");
}

TEST_CASE("wgpu: threads that want the same kernels compile each once; one that does not compile fails for each") {
  const StandIn stand_in;
  const std::shared_ptr<OpenDevice> device = opened();
  wgpu::Pipelines& pipelines = dynamic_cast<wgpu::WgpuDevice&>(*device).pipelines();
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) texts.push_back(concat_text("fn main() {} // ", i));
  const auto wanted = [&](int shift) {
    std::vector<wgpu::KernelText> out;
    for (std::size_t i = 0; i < texts.size(); ++i)
      out.push_back({"k", texts[(i + std::size_t(shift)) % texts.size()], "node %1", static_cast<int>(i % 3)});
    return out;
  };
  std::atomic<int> wrong{0}, told{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const std::vector<wgpu::KernelText> list = wanted(t * 7);
      const std::vector<wgpu::Pipeline> first = pipelines.get(list), again = pipelines.get(list);
      wrong += first != again || first.size() != texts.size();
      const wgpu::KernelText bad[] = {{"bad", "nonsense()", "node %3", 0}};
      try {
        (void)pipelines.get(bad);
      } catch (const Error& e) {
        told += contains(e.what(), "kernel bad does not compile") && contains(e.what(), "node %3");
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(told == 4);
  CHECK(pipelines.size() == texts.size());
  CHECK(stand_in.control().calls("DeviceCreateComputePipeline") == texts.size());
  CHECK(StandIn::broken() == "");
}

TEST_CASE("wgpu: kernels that no program holds go when there are many, those first that were asked for longest ago") {
  const StandIn stand_in;
  const std::shared_ptr<OpenDevice> device = opened();
  wgpu::Pipelines& pipelines = dynamic_cast<wgpu::WgpuDevice&>(*device).pipelines();
  const auto get = [&](int i) {
    const std::string text = concat_text("fn main() {} // ", i);
    const wgpu::KernelText wanted[] = {{"k", text, "node %1", 1}};
    return pipelines.get(wanted).front();
  };
  const auto compiled = [&] { return stand_in.control().calls("DeviceCreateComputePipeline"); };
  const auto live = stand_in.control().live();
  const wgpu::Pipeline held = get(0);
  const int most = static_cast<int>(wgpu::Pipelines::kKept);
  for (int i = 1; i < 2 * most; ++i) (void)get(i);
  CHECK(pipelines.size() == wgpu::Pipelines::kKept);
  CHECK(stand_in.control().live() <= live + wgpu::Pipelines::kKept + 8);
  const auto before = compiled();
  CHECK(get(0) == held);
  (void)get(most + 1);
  CHECK(compiled() == before);  // the kernel was cached
  (void)get(1);
  CHECK(compiled() == before + 1);  // evicted, as it was the oldest
  CHECK(StandIn::broken() == "");
}

}  // namespace rlx
