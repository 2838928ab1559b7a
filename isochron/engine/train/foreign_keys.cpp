#include "isochron/engine/train/foreign_keys.h"

#include <algorithm>
#include <array>
#include <utility>

namespace isochron {

namespace {

constexpr const char* prepare = "it is an option of `python -m isochron.prepare`";
constexpr const char* launcher =
    "the launcher says how many ranks there are (--nproc, torchrun, srun)";
constexpr const char* one_engine = "isochron has one engine, without it";
constexpr const char* model_folder = "isochron takes a model as its folder describes it";

// A key ends in a dot if it stands for all that begin with it.
constexpr std::array<std::pair<std::string_view, const char*>, 87> foreign_keys = {
    {{"data.messages_key", prepare},
     {"data.tools_key", prepare},
     {"data.enable_thinking_key", prepare},
     {"data.enable_thinking_default", prepare},
     {"data.apply_chat_template_kwargs", prepare},
     {"data.apply_chat_template_kwargs.", prepare},
     {"data.ignore_input_ids_mismatch", prepare},
     {"data.image_key", prepare},
     {"data.video_key", prepare},
     {"data.balance_dp_token", "trainer.balance_batch balances"},
     {"data.custom_cls.", "data sets are files of tokenised rows"},
     {"data.use_shm", "rows are mapped from their files"},
     {"data.num_workers", "rows are mapped, nobody loads them"},
     {"checkpoint.strict", "a checkpoint always fits the model exactly"},
     {"checkpoint.mbridge_config", one_engine},
     {"checkpoint.mbridge_config.", one_engine},
     {"trainer.default_hdfs_dir", "checkpoints go to trainer.default_local_dir"},
     {"trainer.nnodes", launcher},
     {"trainer.n_gpus_per_node", launcher},
     {"model.hf_config_path", model_folder},
     {"model.tokenizer_path", prepare},
     {"model.use_shm", "weights are mapped from their files"},
     {"model.trust_remote_code", "no code of a model is ever run"},
     {"model.custom_chat_template", prepare},
     {"model.external_lib", "no code of a model is ever run"},
     {"model.override_config", model_folder},
     {"model.override_config.", model_folder},
     {"model.enable_activation_offload", "engine.recompute saves activations"},
     {"model.use_remove_padding", "rows are always packed"},
     {"model.target_parameters", "adapters are on modules (model.target_modules)"},
     {"model.use_liger", "the loss is always fused"},
     {"model.use_fused_kernels", "the loss is always fused"},
     {"model.fused_kernel_options.", "the loss is always fused"},
     {"model.tiled_mlp.", one_engine},
     {"model.mtp.", one_engine},
     {"model.lora.", "there is one set of LoRA keys (model.lora_rank, ..)"},
     {"engine.strategy", one_engine},
     {"engine.wrap_policy.", one_engine},
     {"engine.param_offload", one_engine},
     {"engine.grad_offload", one_engine},
     {"engine.optimizer_offload", one_engine},
     {"engine.offload_policy", one_engine},
     {"engine.reshard_after_forward", one_engine},
     {"engine.fsdp_size", one_engine},
     {"engine.forward_prefetch", one_engine},
     {"engine.model_dtype", "master weights are always fp32"},
     {"engine.use_orig_params", one_engine},
     {"engine.ulysses_sequence_parallel_size", "engine.context_parallel_size splits sequences"},
     {"engine.entropy_from_logits_with_chunking", "the loss is always chunked (engine.loss_chunk)"},
     {"engine.entropy_from_logits_chunk_size", "engine.loss_chunk is its name"},
     {"engine.use_torch_compile", one_engine},
     {"engine.entropy_checkpointing", "the loss always computes its logits again"},
     {"engine.pad_to_length", "rows are always packed"},
     {"engine.pad_to_length_bucket", "rows are always packed"},
     {"engine.pad_bshd_to_minibatch_max", "rows are always packed"},
     {"engine.forward_only", one_engine},
     {"engine.qat.", one_engine},
     {"engine.turbo_config.", one_engine},
     {"engine.router_replay.", one_engine},
     {"engine.tensor_model_parallel_size", one_engine},
     {"engine.expert_model_parallel_size", one_engine},
     {"engine.expert_tensor_parallel_size", one_engine},
     {"engine.sequence_parallel", one_engine},
     {"engine.use_distributed_optimizer", "the optimizer is always sharded"},
     {"engine.use_dist_checkpointing", "there is one format of checkpoints"},
     {"engine.dist_checkpointing_path", "there is one format of checkpoints"},
     {"engine.dist_checkpointing_prefix", "there is one format of checkpoints"},
     {"engine.dist_ckpt_optim_fully_reshardable", "checkpoints always are"},
     {"engine.distrib_optim_fully_reshardable_mem_efficient", "checkpoints always are"},
     {"engine.override_ddp_config", one_engine},
     {"engine.override_ddp_config.", one_engine},
     {"engine.override_transformer_config.", "engine.recompute says what is computed again"},
     {"engine.override_mcore_model_config", one_engine},
     {"engine.override_mcore_model_config.", one_engine},
     {"engine.use_mbridge", one_engine},
     {"engine.vanilla_mbridge", one_engine},
     {"engine.use_remove_padding", "rows are always packed"},
     {"engine.use_megatron_fsdp", one_engine},
     {"optim.lr_warmup_init", "the learning rate rises from 0"},
     {"optim.lr_decay_steps", "optim.total_training_steps spans the schedule"},
     {"optim.lr_decay_style", "optim.lr_scheduler_type is its name"},
     {"optim.min_lr", "optim.min_lr_ratio is a share of optim.lr"},
     {"optim.weight_decay_incr_style", one_engine},
     {"optim.lr_wsd_decay_style", one_engine},
     {"optim.lr_wsd_decay_steps", one_engine},
     {"optim.use_checkpoint_opt_param_scheduler", one_engine},
     {"optim.optimizer_impl", "AdamW is the optimizer"}}};

}  // namespace

std::optional<std::string> find_foreign_key(std::string_view key) {
  const auto found =
      std::find_if(foreign_keys.begin(), foreign_keys.end(), [&](const auto& foreign) {
        return foreign.first.ends_with('.') ? key.starts_with(foreign.first) : key == foreign.first;
      });
  if (found == foreign_keys.end()) return std::nullopt;
  return found->second;
}

}  // namespace isochron
