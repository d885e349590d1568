// The list of device families; messages suggest the first one that has a name.
// TANDEM_DEVICE_FAMILY(kind, members of DeviceFamily): `DeviceBackend kind_backend()` of a folder
// in kernels/ finds and opens its devices.

TANDEM_DEVICE_FAMILY(cuda, .noun = "GPU", .name = "gpu", .version = "compute capability",
                     .is_hardware = true, .has_tf32 = true, .has_nccl = true, .models = cuda_models)
TANDEM_DEVICE_FAMILY(emulated, .noun = "emulated device", .has_set_link = true)
