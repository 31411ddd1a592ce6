// SPDX-License-Identifier: Apache-2.0
// How the stand-in runtime is told what devices and kernels there are, and how it answers: lines of text, lines of JSON.
#ifndef TMAGEN_HOSTRUN_PROTOCOL_HPP
#define TMAGEN_HOSTRUN_PROTOCOL_HPP

#include <string>

namespace standin {

struct State;

// Reads the configuration that the environment names (TMAGEN_HOSTRUN_CONFIG), for a program with a main of its own.
void configure_from_environment(State& state);

// Takes one configuration line:
//   device MAJOR MINOR SM_COUNT SMEM_OPTIN_BYTES                         one per device, in order
//   kernel NAME ARCH MAX_THREADS STATIC_SMEM_BYTES [OFFSET:SIZE ...]     one per kernel, with its .param table
// Returns false if the line is none of these.
bool configure(State& state, const std::string& line);

// Writes a line of JSON: to the file that TMAGEN_HOSTRUN_RECORD names, or to where serve() answers.
void answer(const std::string& line);

// Waits until whoever reads the record has run the launch that it ends with. Does nothing unless the environment names
// where the reply comes from (TMAGEN_HOSTRUN_REPLY); ends the process where the launch failed.
void await_run();

}  // namespace standin

#endif
