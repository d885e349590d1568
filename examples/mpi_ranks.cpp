// A program of MPI that trains with all of its ranks, between work of its own.
// mpirun -np 2 --bind-to none mpi_ranks TRAIN.toml RUN_DIR
#include <mpi.h>
#include <tandem/tandem.h>
#include <tandem/train_config.h>

#include <cstdio>

namespace api = tandem::api;

int main(int argc, char** argv) {
  int level = 0, rank = 0, ranks = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);  // what Tandem needs at least
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int failed = argc != 3;
  if (failed && rank == 0) std::fprintf(stderr, "usage: mpi_ranks TRAIN.toml RUN_DIR\n");
  try {
    if (!failed) {
      api::TrainConfig config = api::TrainConfig::load(argv[1]);
      config.epochs = 1;
      api::TrainOptions options;
      options.run_dir = argv[2];
      const api::TrainResult result = api::Trainer(config, options).run();
      if (rank == 0) std::printf("loss %.4f\n", result.loss);
    }
  } catch (const tandem::ErrorElsewhere&) {  // another rank reports it
    failed = 1;
  } catch (const tandem::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    failed = 1;
  }
  int all_failed = 0;
  MPI_Allreduce(&failed, &all_failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d ranks, %s\n", ranks, all_failed ? "failed" : "trained");
  MPI_Finalize();
  return all_failed;
}
