// Failures between ranks: starts that hang, errors of NCCL, time limits, ranks that die. Also the
// real library, if this machine has it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda/support/thread_ranks.h"

namespace tandem::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

template <class F>
std::string text_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::runtime);
    return error.what();
  }
  return "";
}

struct Sum {
  explicit Sum(ThreadRank& of) : rank(of), x(of.put(std::string(16, 0))) {}
  void enqueue(Communicator& communicator, const char* name = "loss") {
    communicator.all_reduce(*rank.stream, name, {x->address(), x->address(), 4, DType::float32},
                            Reduction::sum);
  }
  ThreadRank& rank;
  std::unique_ptr<Memory> x;
};

TEST(CollectiveStarts, MissingLibrariesAreNamedByRank) {
  FakeNccl nccl;
  ThreadRanksOptions options;
  options.ranks = 3;
  const auto thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
    if (rank.rank == 1) rank.libraries = nccl_alone(nullptr);
    rank.communicator();
  });
  EXPECT_THAT(thrown, Each(AllOf(HasSubstr("NCCL has not started"),
                                 HasSubstr("got rank 1: NCCL cannot be used: libnccl.so.2 is "
                                           "nowhere (pip install nccl)"),
                                 Not(HasSubstr("rank 0: NCCL")))));
  EXPECT_THAT(thrown[2], StartsWith("cuda:0: rank 2 of 3: "));
}

TEST(CollectiveStarts, OtherVersionsAreNamedByRank) {
  FakeNccl nccl;
  ThreadRanksOptions options;
  const auto thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
    nccl.set_version(rank.rank == 1 ? 22907 : 22809);
    rank.communicator();
  });
  EXPECT_THAT(thrown, Each(HasSubstr("rank 1 has NCCL 2.29.7, rank 0 has 2.28.9")));
}

TEST(CollectiveStarts, NoIdNoStart) {
  FakeNccl nccl;
  nccl.fail("ncclGetUniqueId", 1, ncclSystemError, "Bootstrap : no socket interface found");
  const auto thrown = on_ranks({}, nccl, [&](ThreadRank& rank) { rank.communicator(); });
  EXPECT_THAT(thrown, Each(HasSubstr("rank 0: unhandled system error (ncclSystemError): Bootstrap "
                                     ": no socket interface found")));
}

// Both ranks have the same GPU: the second is refused, and the first gets the error, too.
TEST(CollectiveStarts, TwoRanksOnOneGpu) {
  FakeNccl nccl;
  std::shared_ptr<FakeRuntime> shared = std::make_shared<FakeRuntime>();
  ThreadRanksOptions options;
  options.nccl.start_limit = milliseconds(300);
  const auto thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
    nccl.on_this_thread(shared);
    rank.communicator();
  });
  EXPECT_THAT(thrown,
              Each(AllOf(HasSubstr("NCCL has not started"), HasSubstr("Duplicate GPU detected"))));
  const int refused = thrown[0].find("a GPU of its own") != std::string::npos ? 0 : 1;
  EXPECT_THAT(thrown[refused], HasSubstr("CUDA_VISIBLE_DEVICES"));
  EXPECT_THAT(nccl.problems(), ElementsAre(StartsWith("Duplicate GPU")));
}

TEST(CollectiveStarts, ARankThatDoesNotStartIsNamed) {
  FakeNccl nccl;
  ThreadRanksOptions options;
  options.ranks = 3;
  options.exchange_limit = milliseconds(300);
  options.nccl.start_limit = milliseconds(200);
  const auto begin = steady_clock::now();
  const auto thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
    if (rank.rank == 2) {  // takes the id, and hangs before NCCL
      rank.rendezvous->exchange("NCCL's id", "=" + std::string(128, 0) + "2.28.9");
      return;
    }
    rank.communicator();
  });
  EXPECT_LT(steady_clock::now() - begin, seconds(5));
  const auto names_it =
      AllOf(HasSubstr("NCCL has not started"), HasSubstr("NCCL was not done within 200 ms"),
            HasSubstr("rank 2 has not come at 'NCCL's start'"));
  EXPECT_THAT(thrown, ElementsAre(AllOf(StartsWith("cuda:0: rank 0 of 3: "), names_it),
                                  AllOf(StartsWith("cuda:0: rank 1 of 3: "), names_it), ""));
  EXPECT_EQ(nccl.aborted(), 2);
}

TEST(CollectiveStarts, ARankThatNeverComesIsNamed) {
  FakeNccl nccl;
  ThreadRanksOptions options;
  options.exchange_limit = milliseconds(200);
  const auto thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
    if (rank.rank == 0) rank.communicator();
  });
  EXPECT_THAT(thrown, ElementsAre(HasSubstr("rank 1 has not come at 'NCCL's id'"), ""));
}

TEST(CollectiveStarts, ARankThatDiesMeanwhileEndsTheStart) {
  FakeNccl nccl;
  nccl.hang_starts(true);
  ThreadRanksOptions options;
  const auto begin = steady_clock::now();
  const auto thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
    if (rank.rank == 0) return (void)rank.communicator();
    rank.rendezvous->exchange("NCCL's id", "=" + std::string(128, 0) + "2.28.9");
    std::this_thread::sleep_for(milliseconds(100));
    rank.hub->lose("rank 1 has died");
  });
  EXPECT_LT(steady_clock::now() - begin, seconds(5));  // the limit for starts is two minutes
  EXPECT_THAT(thrown[0], HasSubstr("rank 1 has died"));
  EXPECT_EQ(nccl.aborted(), 1);
}

TEST(CollectiveFailures, AnErrorThatComesLaterEndsTheCommunicator) {
  FakeNccl nccl;
  const auto thrown = on_ranks({}, nccl, [&](ThreadRank& rank) {
    const auto communicator = rank.communicator();
    Sum sum(rank);
    sum.enqueue(*communicator);
    communicator->wait(*rank.stream);
    rank.rendezvous->exchange("both are here", "");
    if (rank.rank == 1) nccl.fail_later(1, ncclRemoteError, "connection closed by 10.0.0.7");
    if (rank.rank == 1) {
      const std::string first = text_of([&] { communicator->check(); });
      EXPECT_THAT(first, AllOf(StartsWith("cuda:0: rank 1 of 2: the communicator has failed: got "
                                          "remote process exited or there was a network error "
                                          "(ncclRemoteError): connection closed by 10.0.0.7"),
                               HasSubstr("look at what the other ranks have printed")));
      EXPECT_EQ(nccl.aborted(), 1);
      EXPECT_EQ(text_of([&] { communicator->check(); }), first);  // and all later calls fail alike
      EXPECT_EQ(text_of([&] { sum.enqueue(*communicator); }), first);
      EXPECT_EQ(text_of([&] { communicator->wait(*rank.stream); }), first);
      EXPECT_EQ(text_of([&] { communicator->watch(*rank.stream, "x"); }), first);
    } else {
      communicator->check();  // has no error yet
    }
  });
  EXPECT_THAT(thrown, Each(""));
}

TEST(CollectiveFailures, ACallThatFailsNamesTheOperation) {
  for (const int polls : {0, 2}) {
    FakeNccl nccl;
    nccl.set_polls(polls);
    ThreadRanksOptions options;
    options.ranks = 1;
    const auto thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
      const auto communicator = rank.communicator();
      Sum sum(rank);
      nccl.fail("ncclAllReduce", 2, ncclSystemError, "Call to connect failed : no route to host");
      sum.enqueue(*communicator, "conv1.weight");
      sum.enqueue(*communicator, "conv2.weight");
    });
    EXPECT_THAT(thrown,
                ElementsAre(AllOf(StartsWith("cuda:0: rank 0 of 1: all_reduce of 'conv2.weight' "
                                             "failed: got unhandled system error "
                                             "(ncclSystemError): Call to connect failed"),
                                  HasSubstr("NCCL_SOCKET_IFNAME"))));
    EXPECT_EQ(nccl.aborted(), 1);
  }
}

// A group that has begun is ended even if a call in it fails.
TEST(CollectiveFailures, ASendThatFails) {
  FakeNccl nccl;
  ThreadRanksOptions options;
  options.ranks = 1;
  const auto thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
    {
      const auto communicator = rank.communicator();
      Sum sum(rank);
      nccl.fail("ncclRecv", 1, ncclSystemError, "no memory");
      const auto y = rank.put(std::string(16, 0));
      EXPECT_THAT(text_of([&] {
                    communicator->all_to_all(*rank.stream, "ids",
                                             {sum.x->address(), y->address(), 4, DType::float32});
                  }),
                  HasSubstr("all_to_all of 'ids' failed"));
    }
    const ncclResult_t again = nccl.table()->ncclGroupEnd();
    EXPECT_EQ(again, ncclInvalidUsage) << "no group is open";
  });
  EXPECT_THAT(thrown, Each(""));
}

TEST(CollectiveFailures, AnOperationThatWaitsInVainIsNamedWhenItsTimeIsOver) {
  FakeNccl nccl;
  ThreadRanksOptions options;
  options.nccl.operation_limit = milliseconds(200);
  const auto thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
    const auto communicator = rank.communicator();
    Sum sum(rank);
    sum.enqueue(*communicator, "first");
    communicator->wait(*rank.stream);
    if (rank.rank == 1) {
      rank.rendezvous->exchange("rank 0 has given up", "");
      return communicator->abort("rank 0 has given up");
    }
    sum.enqueue(*communicator, "second");  // only on rank 0
    const auto begin = steady_clock::now();
    std::string text;
    while (text.empty() && steady_clock::now() - begin < seconds(5)) {
      text = text_of([&] { communicator->check(); });
      std::this_thread::sleep_for(milliseconds(2));
    }
    const auto taken = steady_clock::now() - begin;
    EXPECT_GE(taken, milliseconds(195));
    EXPECT_LT(taken, milliseconds(1500));
    EXPECT_THAT(text,
                AllOf(StartsWith("cuda:0: rank 0 of 2: 'second' was not done within 200 ms: got "
                                 "nothing for 2"),
                      HasSubstr("another rank has stopped")));
    rank.rendezvous->exchange("rank 0 has given up", "");
    rank.stream->synchronize();  // no work of it is left on the GPU
  });
  EXPECT_THAT(thrown, Each(""));
  EXPECT_EQ(nccl.aborted(), 2);
}

// The time limit of a queued operation starts when the operation before it is done.
TEST(CollectiveFailures, ALongRowIsNotLate) {
  FakeNccl nccl;
  ThreadRanksOptions options;
  options.nccl.operation_limit = milliseconds(1200);
  const auto thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
    const auto communicator = rank.communicator();
    Sum sum(rank);
    if (rank.rank == 0) {
      for (int i = 0; i < 6; ++i) sum.enqueue(*communicator);
    }
    for (int i = 0; i < 6 && rank.rank == 1; ++i) {  // 1800 ms together
      std::this_thread::sleep_for(milliseconds(300));
      sum.enqueue(*communicator);
    }
    communicator->wait(*rank.stream);
  });
  EXPECT_THAT(thrown, Each(""));
}

TEST(CollectiveFailures, ALaunchedGraphIsWatched) {
  FakeNccl nccl;
  ThreadRanksOptions options;
  options.nccl.operation_limit = milliseconds(200);
  const auto thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
    const auto communicator = rank.communicator();
    Sum sum(rank);
    rank.stream->begin_capture();
    sum.enqueue(*communicator);
    const auto captured = rank.stream->end_capture();
    std::string text;
    if (rank.rank == 0) {
      rank.stream->launch(*captured);
      communicator->watch(*rank.stream, "step 7");
      text = text_of([&] { communicator->wait(*rank.stream); });
      EXPECT_THAT(text, HasSubstr("'step 7' was not done within 200 ms"));
    }
    rank.rendezvous->exchange("rank 0 has given up", "");
    if (rank.rank == 1) communicator->abort("rank 0 has given up");
  });
  EXPECT_THAT(thrown, Each(""));
}

TEST(CollectiveFailures, AWatcherFreesAThreadThatWaits) {
  FakeNccl nccl;
  nccl.hang_operations(true);
  ThreadRanksOptions options;
  options.ranks = 1;
  options.nccl.operation_limit = milliseconds(200);
  const auto thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
    const auto communicator = rank.communicator();
    Sum sum(rank);
    sum.enqueue(*communicator);
    std::thread watcher([&] {
      std::string text;
      const auto start = steady_clock::now();
      while (text.empty() && steady_clock::now() - start < seconds(5)) {
        text = text_of([&] { communicator->check(); });
        std::this_thread::sleep_for(milliseconds(5));
      }
      if (text.empty()) communicator->abort("the test has failed");
      EXPECT_THAT(text, HasSubstr("'loss' was not done within 200 ms"));
    });
    const auto begin = steady_clock::now();
    rank.stream->synchronize();
    EXPECT_LT(steady_clock::now() - begin, seconds(5));
    watcher.join();
  });
  EXPECT_THAT(thrown, Each(""));
}

TEST(CollectiveFailures, AnotherRanksDeathEndsAWait) {
  FakeNccl nccl;
  ThreadRanksOptions options;
  options.ranks = 4;
  const auto begin = steady_clock::now();
  const auto thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
    const auto communicator = rank.communicator();
    Sum sum(rank);
    if (rank.rank == 2) {
      std::this_thread::sleep_for(milliseconds(100));
      rank.hub->lose("rank 2 (10.0.0.7:40000) has died");
      throw Error(ErrorKind::runtime, Diagnostic{.message = "dies"});
    }
    sum.enqueue(*communicator);
    communicator->wait(*rank.stream);
  });
  EXPECT_LT(steady_clock::now() - begin, seconds(5));  // the limit for operations is ten minutes
  const auto lost = HasSubstr("the run cannot continue: got rank 2 (10.0.0.7:40000) has died");
  EXPECT_THAT(thrown, ElementsAre(lost, lost, "dies", lost));
  EXPECT_EQ(nccl.aborted(), 4);
}

TEST(CollectiveFailures, RanksThatDisagreeAreFound) {
  FakeNccl nccl;
  const auto thrown = on_ranks({}, nccl, [&](ThreadRank& rank) {
    const auto communicator = rank.communicator();
    const auto x = rank.put(std::string(64, 0));
    const std::size_t count = rank.rank == 0 ? 4 : 5;
    communicator->all_reduce(*rank.stream, "x", {x->address(), x->address(), count, DType::float32},
                             Reduction::sum);
    communicator->wait(*rank.stream);
  });
  EXPECT_THAT(thrown, Each(HasSubstr("ncclAllReduce of 5 elements")));
  EXPECT_THAT(nccl.problems(), ElementsAre(HasSubstr("another rank at ncclAllReduce of")));
}

TEST(CollectiveFailures, AbortIsFinal) {
  FakeNccl nccl;
  ThreadRanksOptions options;
  options.ranks = 1;
  const auto thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
    const auto communicator = rank.communicator();
    Sum sum(rank);
    communicator->abort("the user wants it");
    communicator->abort("again");
    EXPECT_EQ(text_of([&] { sum.enqueue(*communicator); }),
              "cuda:0: rank 0 of 1: the communicator was aborted: the user wants it");
  });
  EXPECT_THAT(thrown, Each(""));
  EXPECT_EQ(nccl.aborted(), 1);
  EXPECT_THAT(nccl.problems(), IsEmpty());
}

// The fake's checks find the errors that they are made for.
TEST(FakeNcclRules, AreChecked) {
  FakeNccl nccl;
  const cuda::Nccl& table = *nccl.table();
  const auto runtime = std::make_shared<FakeRuntime>();
  nccl.on_this_thread(runtime);
  nccl.set_polls(1);
  ncclUniqueId id;
  ASSERT_EQ(table.ncclGetUniqueId(&id), ncclSuccess);
  ncclComm_t communicator = nullptr;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(table.ncclCommInitRankConfig(&communicator, 1, id, 0, &config), ncclInvalidArgument);
  config.blocking = 0;
  EXPECT_EQ(table.ncclCommInitRankConfig(&communicator, 1, ncclUniqueId{}, 0, &config),
            ncclInvalidArgument);
  EXPECT_EQ(table.ncclCommInitRankConfig(&communicator, 1, id, 0, &config), ncclInProgress);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(runtime->make_stream(stream), cudaSuccess);
  const auto sum = [&] {
    return table.ncclAllReduce(nullptr, nullptr, 0, ncclFloat32, ncclSum, communicator, stream);
  };
  EXPECT_EQ(sum(), ncclInvalidUsage);  // it has not started
  ncclResult_t state = ncclInProgress;
  EXPECT_EQ(table.ncclCommGetAsyncError(communicator, &state), ncclSuccess);
  EXPECT_EQ(state, ncclSuccess);
  EXPECT_EQ(table.ncclSend(nullptr, 0, ncclInt8, 0, communicator, stream), ncclInvalidUsage);
  EXPECT_EQ(sum(), ncclInProgress);
  EXPECT_EQ(sum(), ncclInvalidUsage);  // the first one is in progress
  EXPECT_EQ(table.ncclCommDestroy(communicator), ncclInvalidUsage);
  EXPECT_EQ(table.ncclCommAbort(communicator), ncclInvalidArgument);  // it no longer exists
  EXPECT_THAT(
      nccl.problems(),
      ElementsAre(HasSubstr("blocks"), HasSubstr("an id that nobody has made"),
                  HasSubstr("in progress"), HasSubstr("outside of a group"),
                  HasSubstr("in progress"), HasSubstr("not finalized"), HasSubstr("is gone")));
  EXPECT_EQ(runtime->destroy_stream(stream), cudaSuccess);
}

TEST(RealNccl, MakesAnIdAndStartsOnlyOnAGpu) {
  const auto libraries = cuda::make_real_libraries();
  const cuda::Nccl* const nccl = libraries->nccl();
  if (nccl == nullptr) GTEST_SKIP() << "NCCL is not on this machine: see tandem doctor";
  int version = 0;
  EXPECT_EQ(nccl->ncclGetVersion(&version), ncclSuccess);
  EXPECT_GE(version, NCCL_VERSION_CODE / 100 * 100);
  EXPECT_STRNE(nccl->ncclGetErrorString(ncclSystemError), "");
  const auto runtime = cuda::make_real_runtime();
  int gpus = 0;
  const bool has_gpu = runtime->gpu_count(gpus) == cudaSuccess && gpus > 0;
  const auto start = [&] {
    return cuda::make_nccl_communicator({}, std::shared_ptr<Rendezvous>(make_rendezvous({})),
                                        runtime, libraries);
  };
  if (has_gpu) {
    EXPECT_EQ(start()->ranks(), 1);
  } else {
    EXPECT_THAT(text_of(start), AllOf(StartsWith("cuda:0: rank 0 of 1: NCCL has not started"),
                                      HasSubstr("rank 0: "), HasSubstr("tandem doctor")));
  }
}

}  // namespace
}  // namespace tandem::testing
