// Ranks that find each other over TCP, as processes: exchanges, ranks that are missing, killed,
// wrong, and connections of others.
#include "engine/ranks/rendezvous.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>

#include <map>
#include <string>
#include <thread>

#include "tests/engine/ranks/rank_processes.h"

namespace tandem::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string joined(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) text += one + ";";
  return text;
}

class Rendezvouses : public ::testing::Test {
 protected:
  RankOptions options(int rank, int ranks, milliseconds limit = milliseconds(10000)) const {
    RankOptions of;
    of.rank = rank;
    of.ranks = ranks;
    of.address = "127.0.0.1:" + std::to_string(port_);
    of.limit = limit;
    return of;
  }
  /// A connection to the port that does not come from a rank; retried while no process listens.
  int connect_foreigner() const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port_));
    for (int i = 0; i < 500; ++i) {
      const int foreigner = socket(AF_INET, SOCK_STREAM, 0);
      if (connect(foreigner, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
        return foreigner;
      close(foreigner);
      std::this_thread::sleep_for(milliseconds(10));
    }
    return -1;
  }

  const int port_ = free_port();
  RankProcesses processes_;
};

using std::chrono::steady_clock;

TEST(Rendezvous, OneRankNeedsNobody) {
  const auto one = make_rendezvous({});
  EXPECT_EQ(one->ranks(), 1);
  EXPECT_THAT(one->exchange("name", "bytes"), ElementsAre("bytes"));
  EXPECT_EQ(one->failure(), std::nullopt);
}

TEST_F(Rendezvouses, EveryRankGetsTheBytesOfAll) {
  for (int rank = 3; rank >= 0; --rank) {  // rank 0 comes last
    processes_.start([&, rank] {
      const auto ranks = make_rendezvous(options(rank, 4));
      std::string text = joined(ranks->exchange("first", "a" + std::to_string(rank)));
      text += joined(ranks->exchange("second", rank == 2 ? std::string("\0x", 2) : ""));
      const std::string large(Rendezvous::most_bytes, static_cast<char>('p' + rank));
      for (const std::string& bytes : ranks->exchange("third", large)) {
        text +=
            bytes.size() == large.size() && bytes.find_first_not_of(bytes[0]) == std::string::npos
                ? bytes.substr(0, 1)
                : "?";
      }
      return text + (ranks->failure() ? *ranks->failure() : " well");
    });
  }
  const std::string expected = std::string("a0;a1;a2;a3;;;\0x;;pqrs well", 27);
  EXPECT_THAT(processes_.said(), ElementsAre(expected, expected, expected, expected));
}

TEST_F(Rendezvouses, RanksThatNeverConnectAreNamed) {
  for (int rank : {0, 2}) {
    processes_.start([&, rank] {
      const auto ranks = make_rendezvous(options(rank, 4, milliseconds(700)));
      return joined(ranks->exchange("NCCL", ""));
    });
  }
  const auto begin = steady_clock::now();
  const std::vector<std::string> said = processes_.said();
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_THAT(said, Each(HasSubstr("rank 1 has not connected, rank 3 has not connected at 'NCCL' "
                                   "within 700 ms (at 'NCCL') (look at what the ranks named")));
  EXPECT_THAT(said[0], StartsWith("error: rank 0 of 4: "));
  EXPECT_THAT(said[1], StartsWith("error: rank 2 of 4: "));
}

TEST_F(Rendezvouses, ARankThatIsThereAndDoesNotComeIsNamed) {
  processes_.start([&] {
    return joined(make_rendezvous(options(0, 2, milliseconds(500)))->exchange("weights", ""));
  });
  processes_.start([&] {
    const auto ranks = make_rendezvous(options(1, 2, milliseconds(500)));
    std::this_thread::sleep_for(milliseconds(1500));
    return ranks->failure().value_or("none");
  });
  EXPECT_THAT(processes_.said(),
              Each(AllOf(HasSubstr("rank 1 (127.0.0.1:"),
                         HasSubstr("is connected but has not reached it at 'weights'"))));
}

TEST_F(Rendezvouses, NobodyHasToComeToAnythingWhileAllAreThere) {
  for (int rank = 0; rank < 2; ++rank) {
    processes_.start([&, rank] {
      const auto ranks = make_rendezvous(options(rank, 2, milliseconds(1000)));
      std::this_thread::sleep_for(milliseconds(1500));
      return ranks->failure().value_or("well") + joined(ranks->exchange("late", "x"));
    });
  }
  EXPECT_THAT(processes_.said(), Each("wellx;x;"));
}

TEST_F(Rendezvouses, AKilledRankIsNamedToAllAtOnce) {
  for (int rank = 0; rank < 4; ++rank) {
    processes_.start([&, rank]() -> std::string {
      const auto ranks = make_rendezvous(options(rank, 4, milliseconds(60000)));
      ranks->exchange("start", "");
      if (rank == 2) kill(getpid(), SIGKILL);
      if (rank == 3) return joined(ranks->exchange("next", ""));  // is waiting
      for (int i = 0; i < 1000; ++i) {                            // checks now and then
        if (const auto failure = ranks->failure()) return "failure: " + *failure;
        std::this_thread::sleep_for(milliseconds(10));
      }
      return "nothing";
    });
  }
  const auto begin = steady_clock::now();
  const std::vector<std::string> said = processes_.said();
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(8));
  const auto names_it = AllOf(HasSubstr("rank 2 (127.0.0.1:"), HasSubstr("has died"));
  EXPECT_THAT(said, ElementsAre(AllOf(StartsWith("failure: "), names_it),
                                AllOf(StartsWith("failure: "), names_it), "",
                                AllOf(StartsWith("error: rank 3 of 4: "), names_it)));
}

TEST_F(Rendezvouses, TheDeathOfRank0IsSeen) {
  for (int rank = 0; rank < 3; ++rank) {
    processes_.start([&, rank] {
      const auto ranks = make_rendezvous(options(rank, 3, milliseconds(60000)));
      ranks->exchange("start", "");
      if (rank == 0) kill(getpid(), SIGKILL);
      return joined(ranks->exchange("next", ""));
    });
  }
  const auto died = HasSubstr("rank 0 (127.0.0.1:" + std::to_string(port_) + ") has died");
  EXPECT_THAT(processes_.said(), ElementsAre("", died, died));
}

TEST_F(Rendezvouses, ARankThatHasEndedIsWaitedForInVain) {
  for (int rank = 0; rank < 3; ++rank) {
    processes_.start([&, rank] {
      const auto ranks = make_rendezvous(options(rank, 3, milliseconds(60000)));
      ranks->exchange("start", "");
      if (rank == 1) return std::string("done");
      return joined(ranks->exchange("more", ""));
    });
  }
  const auto waits = AllOf(HasSubstr("rank 1 has ended"), HasSubstr("'more'"));
  EXPECT_THAT(processes_.said(), ElementsAre(waits, "done", waits));
}

TEST_F(Rendezvouses, OneThatEndsProperlyHasNotDied) {
  for (int rank = 0; rank < 3; ++rank) {
    processes_.start([&, rank] {
      auto ranks = make_rendezvous(options(rank, 3));
      ranks->exchange("start", "");
      if (rank != 1) return std::string("done");  // rank 0, the server, too
      std::this_thread::sleep_for(milliseconds(1500));
      return ranks->failure().value_or("well");
    });
  }
  EXPECT_THAT(processes_.said(), ElementsAre("done", "well", "done"));
}

TEST_F(Rendezvouses, AStoppedRankIsNamedToAll) {
  for (const int whom : {1, 0}) {  // rank 0 serves
    RankProcesses processes;
    for (int rank = 0; rank < 3; ++rank) {
      processes.start([&, rank] {
        RankOptions of = options(rank, 3, milliseconds(60000));
        of.silence = milliseconds(2000);
        const auto ranks = make_rendezvous(of);
        ranks->exchange("start", "");
        if (rank == whom) {
          std::thread([parent = getpid()] {  // resumes this rank after the others have ended
            if (fork() != 0) return;
            std::this_thread::sleep_for(milliseconds(7000));
            kill(parent, SIGCONT);
            _exit(0);
          })
              .join();
          raise(SIGSTOP);
          return std::string("went on");
        }
        const auto begin = steady_clock::now();
        while (!ranks->failure() && steady_clock::now() - begin < std::chrono::seconds(6))
          std::this_thread::sleep_for(milliseconds(20));
        return ranks->failure().value_or("nothing");
      });
    }
    std::vector<std::string> said = processes.said();
    EXPECT_EQ(said[static_cast<std::size_t>(whom)], "went on");
    said.erase(said.begin() + whom);
    EXPECT_THAT(said, Each(AllOf(StartsWith("rank " + std::to_string(whom) + " (127.0.0.1:"),
                                 HasSubstr("has given no sign of life for 2 s"))));
  }
}

TEST_F(Rendezvouses, ARunThatWasStoppedAsAWholeGoesOn) {
  for (int rank = 0; rank < 2; ++rank) {
    processes_.start([&, rank] {
      RankOptions of = options(rank, 2);
      of.silence = milliseconds(1500);
      const auto ranks = make_rendezvous(of);
      ranks->exchange("start", "");
      std::this_thread::sleep_for(milliseconds(6000));  // computes; is stopped meanwhile
      return joined(ranks->exchange("end", std::to_string(rank)));
    });
  }
  std::this_thread::sleep_for(milliseconds(1500));
  for (const pid_t pid : processes_.pids()) kill(pid, SIGSTOP);
  std::this_thread::sleep_for(milliseconds(5000));
  for (const pid_t pid : processes_.pids()) kill(pid, SIGCONT);
  EXPECT_THAT(processes_.said(), Each("0;1;"));
}

TEST_F(Rendezvouses, ARankThatEndsWithAnErrorTellsAllWhy) {
  for (int rank = 0; rank < 3; ++rank) {
    processes_.start([&, rank] {
      const auto ranks = make_rendezvous(options(rank, 3, milliseconds(60000)));
      ranks->exchange("start", "");
      if (rank == 1) {
        ranks->fail("row 17 has no label");
        return ranks->failure().value_or("nothing");
      }
      return joined(ranks->exchange("next", ""));
    });
  }
  const auto told = AllOf(HasSubstr("rank 1 (127.0.0.1:"),
                          HasSubstr("has ended with an error: row 17 has no label"));
  EXPECT_THAT(processes_.said(),
              ElementsAre(told, "this rank has ended with an error: row 17 has no label", told));
}

TEST_F(Rendezvouses, Rank0TellsWhereItListens) {
  for (const bool one_machine : {true, false}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    RankProcesses processes;
    for (int rank = 0; rank < 2; ++rank) {
      processes.start([&, rank] {
        RankOptions of = options(rank, 2);
        of.address = "";
        of.one_machine = one_machine;
        std::string address;
        of.share = [&](const std::string& own) {
          char text[1024] = "";
          if (rank == 0) {
            own.copy(text, sizeof text - 1);
            (void)!write(ends[1], text, sizeof text);
          } else {
            EXPECT_EQ(own, "");
            (void)!read(ends[0], text, sizeof text);
          }
          return address = text;
        };
        const auto ranks = make_rendezvous(of);
        return address.substr(0, 10) + " " + joined(ranks->exchange("start", "x"));
      });
    }
    const std::vector<std::string> said = processes.said();
    EXPECT_EQ(said[0], said[1]);
    EXPECT_THAT(said, Each(HasSubstr(" x;x;")));
    EXPECT_THAT(said, Each(one_machine ? StartsWith("127.0.0.1:") : StartsWith("")));
    close(ends[0]);
    close(ends[1]);
  }
}

TEST_F(Rendezvouses, TwoOfOneNumberAreRefused) {
  processes_.start([&] {
    return joined(make_rendezvous(options(0, 3, milliseconds(1500)))->exchange("start", ""));
  });
  for (int i = 0; i < 2; ++i) {
    processes_.start([&] {
      const auto ranks = make_rendezvous(options(1, 3, milliseconds(1500)));
      return joined(ranks->exchange("start", ""));
    });
  }
  const std::vector<std::string> said = processes_.said();
  EXPECT_THAT(said[0], AllOf(HasSubstr("rank 2 has not connected"),
                             HasSubstr("was refused: rank 1 is taken by")));
  const auto refused = AllOf(StartsWith("usage: rank 1 of 3: rank 0 refuses it: rank 1 is taken by "
                                        "127.0.0.1:"),
                             HasSubstr("a number of its own"));
  const int first = said[1].starts_with("usage") ? 1 : 2;
  EXPECT_THAT(said[first], refused);
  EXPECT_THAT(said[3 - first], HasSubstr("rank 2 has not connected"));
}

TEST_F(Rendezvouses, AnotherNumberOfRanksIsRefused) {
  processes_.start([&] {
    return joined(make_rendezvous(options(0, 2, milliseconds(1000)))->exchange("start", ""));
  });
  processes_.start([&] {
    return joined(make_rendezvous(options(1, 8, milliseconds(1000)))->exchange("start", ""));
  });
  EXPECT_THAT(processes_.said(),
              ElementsAre(HasSubstr("this run has 2 ranks, not 8"),
                          AllOf(StartsWith("usage: "), HasSubstr("this run has 2 ranks, not 8"),
                                HasSubstr("look at TANDEM_RANK and TANDEM_RANKS"))));
}

TEST_F(Rendezvouses, RanksAtDifferentExchangesAreNamed) {
  for (int rank = 0; rank < 2; ++rank) {
    processes_.start([&, rank] {
      const auto ranks = make_rendezvous(options(rank, 2));
      return joined(ranks->exchange(rank == 0 ? "plan" : "weights", ""));
    });
  }
  EXPECT_THAT(processes_.said(), Each(AllOf(HasSubstr("'plan'"), HasSubstr("'weights'"),
                                            HasSubstr("is at the exchange"))));
}

TEST_F(Rendezvouses, ConnectionsOfOthersDoNoHarm) {
  for (int rank = 0; rank < 2; ++rank) {
    processes_.start([&, rank] {
      if (rank == 1) std::this_thread::sleep_for(milliseconds(700));
      return joined(make_rendezvous(options(rank, 2))->exchange("start", std::to_string(rank)));
    });
  }
  std::vector<int> foreigners;
  const std::string texts[] = {"GET / HTTP/1.1\r\nHost: node1\r\n\r\n", std::string(1000, '\xff'),
                               // frames of a length that is never sent, and one before its hello
                               std::string("TNDM\1\1\xff\xff\xff\xff", 10),
                               std::string("TNDM\1\4\0\0\0\0", 10), ""};
  for (const std::string& text : texts) {
    foreigners.push_back(connect_foreigner());
    ASSERT_GE(foreigners.back(), 0);
    EXPECT_EQ(send(foreigners.back(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  EXPECT_THAT(processes_.said(), Each("0;1;"));
  for (const int foreigner : foreigners) close(foreigner);
}

TEST_F(Rendezvouses, AForeignConnectionStandsBesideTheMissingRank) {
  processes_.start([&] {
    return joined(make_rendezvous(options(0, 2, milliseconds(800)))->exchange("start", ""));
  });
  const int foreigner = connect_foreigner();
  ASSERT_GE(foreigner, 0);
  EXPECT_GT(send(foreigner, "SSH-2.0", 7, MSG_NOSIGNAL), 0);
  EXPECT_THAT(processes_.said(),
              ElementsAre(AllOf(HasSubstr("rank 1 has not connected"),
                                HasSubstr("was refused: it is no rank of this program"))));
  close(foreigner);
}

TEST_F(Rendezvouses, APortThatIsTaken) {
  const auto first = make_rendezvous(options(0, 2));
  processes_.start([&] { return joined(make_rendezvous(options(0, 2))->exchange("", "")); });
  EXPECT_THAT(processes_.said(), ElementsAre(AllOf(HasSubstr("rank 0 cannot listen at 127.0.0.1:"),
                                                   HasSubstr("is taken by another program"))));
}

TEST_F(Rendezvouses, NobodyAnswers) {
  processes_.start(
      [&] { return joined(make_rendezvous(options(1, 2, milliseconds(1000)))->exchange("", "")); });
  EXPECT_THAT(processes_.said(),
              ElementsAre(AllOf(HasSubstr("rank 1 of 2: nothing answers at 127.0.0.1:"),
                                HasSubstr("within 1 s"), HasSubstr("start rank 0"))));
}

TEST_F(Rendezvouses, AnotherProgramAnswers) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  processes_.start([&] { return joined(make_rendezvous(options(1, 2))->exchange("", "")); });
  const int client = accept(listener, nullptr, nullptr);
  EXPECT_GT(send(client, "220 mail\r\n", 10, MSG_NOSIGNAL), 0);
  EXPECT_THAT(processes_.said(), ElementsAre(HasSubstr("is no rank 0 of this program")));
  close(client);
  close(listener);
}

TEST(Rendezvous, OptionsThatCannotBe) {
  const auto text_of = [](RankOptions options) {
    try {
      make_rendezvous(options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_THAT(text_of({.rank = 4, .ranks = 4}), HasSubstr("rank 4 of 4: there is no such rank"));
  for (const char* address : {"", "node1", "node1:", ":1", "node1:0", "node1:99999", "node1:x"})
    EXPECT_THAT(
        text_of({.rank = 1, .ranks = 2, .address = address}),
        AllOf(HasSubstr("expected host:port"), HasSubstr('"' + std::string(address) + '"')));
}

RankVariables variables(std::map<std::string, std::string> of) {
  return [of = std::move(of)](const char* name) {
    const auto found = of.find(name);
    return found == of.end() ? "" : found->second;
  };
}

TEST(RankOptions, ByLauncher) {
  const auto check = [](std::map<std::string, std::string> of, int rank, int ranks, int local) {
    of.emplace("TANDEM_ADDRESS", "node1:29400");
    const RankOptions options = rank_options(variables(of));
    EXPECT_EQ(options.rank, rank);
    EXPECT_EQ(options.ranks, ranks);
    EXPECT_EQ(options.local_rank, local);
    EXPECT_EQ(options.address, "node1:29400");
  };
  check({}, 0, 1, 0);
  check({{"TANDEM_RANK", "5"}, {"TANDEM_RANKS", "8"}}, 5, 8, 5);
  check({{"TANDEM_RANK", "5"}, {"TANDEM_RANKS", "8"}, {"TANDEM_LOCAL_RANK", "1"}}, 5, 8, 1);
  check({{"OMPI_COMM_WORLD_RANK", "3"},
         {"OMPI_COMM_WORLD_SIZE", "4"},
         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}},
        3, 4, 1);
  check({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}}, 1, 2, 0);
  check({{"SLURM_PROCID", "6"}, {"SLURM_STEP_NUM_TASKS", "7"}, {"SLURM_LOCALID", "2"}}, 6, 7, 2);
  // Our own come first; a batch script of Slurm's is one process, however many tasks it may start.
  check({{"TANDEM_RANK", "1"}, {"TANDEM_RANKS", "2"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "4"}}, 1, 2,
        1);
  check({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}, 0, 1, 0);
}

TEST(RankOptions, WhatCannotBe) {
  const auto text_of = [](std::map<std::string, std::string> of) {
    try {
      rank_options(variables(std::move(of)));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_THAT(text_of({{"TANDEM_RANK", "1"}}), HasSubstr("TANDEM_RANKS: expected a number"));
  EXPECT_THAT(text_of({{"TANDEM_RANKS", "2"}}), HasSubstr("TANDEM_RANK: expected a number"));
  EXPECT_THAT(text_of({{"TANDEM_RANK", "2"}, {"TANDEM_RANKS", "2"}}),
              HasSubstr("TANDEM_RANK: expected a number from 0 to 1, got \"2\""));
  EXPECT_THAT(text_of({{"PMI_RANK", "1x"}, {"PMI_SIZE", "2"}}), HasSubstr("got \"1x\""));
  EXPECT_THAT(text_of({{"RANK", "1"}, {"WORLD_SIZE", "4"}}),
              AllOf(HasSubstr("by the variables of PyTorch's torchrun"),
                    HasSubstr("got RANK=1, WORLD_SIZE=4"), HasSubstr("tandem launch -n 4")));
  EXPECT_THAT(text_of({{"RANK_ID", "0"}, {"RANK_SIZE", "8"}}), HasSubstr("MindSpore's launcher"));
  EXPECT_THAT(text_of({{"MS_ROLE", "MS_WORKER"}, {"MS_WORKER_NUM", "4"}}),
              HasSubstr("MindSpore's dynamic cluster"));
  EXPECT_EQ(text_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), "none");
  EXPECT_EQ(text_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}),
            "none");
}

}  // namespace
}  // namespace tandem::testing
