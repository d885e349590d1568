// The list of subcommands, in the order of `tandem --help`. TANDEM_COMMAND(name, processes,
// examples): `add_name` of tools/name.cpp adds it; `ranks` if processes that mpirun started work
// together, else `one`; its lines among the examples of `tandem --help`, with what they do.
TANDEM_COMMAND(inspect, one,
               "  tandem inspect model.onnx                 what is in it, what is trainable, what "
               "is missing\n")
TANDEM_COMMAND(init, one,
               "  tandem init model.onnx --data FOLDER      writes train.toml and policy.toml with "
               "reasons\n")
TANDEM_COMMAND(train, ranks,
               "  tandem train train.toml                   train; progress here, results in "
               "runs/train-0001\n"
               "  tandem train train.toml --resume          continue the newest unfinished run\n")
TANDEM_COMMAND(tune, one,
               "  tandem tune train.toml --over 'optimizer.lr=log(1e-4,1e-1)'   search settings\n")
TANDEM_COMMAND(launch, one,
               "  tandem launch -n 4 -- train train.toml    the same by four processes of this "
               "machine\n")
TANDEM_COMMAND(eval, ranks,
               "  tandem eval runs/train-0001               loss and metrics over the held-out "
               "data\n")
TANDEM_COMMAND(predict, ranks,
               "  tandem predict runs/train-0001 --data rows.tsv --to predictions.tsv\n")
TANDEM_COMMAND(generate, one,
               "  tandem generate runs/chat-0001 --prompt 'What is new?'   what a language model "
               "writes\n")
TANDEM_COMMAND(export, one, "  tandem export runs/train-0001 --to trained.onnx\n")
TANDEM_COMMAND(runs, one, "")
TANDEM_COMMAND(diff, one, "")
TANDEM_COMMAND(report, one, "")
TANDEM_COMMAND(bench, one, "")
TANDEM_COMMAND(data, one,
               "  tandem data check train.toml              reads all of the data: counts, ranges, "
               "bad rows\n")
TANDEM_COMMAND(doctor, ranks, "")
TANDEM_COMMAND(config, one, "")
TANDEM_COMMAND(policy, one,
               "  tandem policy plan policy.toml --config train.toml   memory, copies and time "
               "under a policy\n")
TANDEM_COMMAND(completion, one, "")
TANDEM_COMMAND(man, one, "")
