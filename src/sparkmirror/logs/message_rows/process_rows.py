"""Messages about tasks, connectors, Spark, groups of workers and the REST API."""

from __future__ import annotations

from sparkmirror.logs.message_types import Message, MessageLine, message

MESSAGES = (
    Message(
        (
            MessageLine("FAILED: <reason>", "spark.task_runner"),
            MessageLine("<how it ended>; starting it again in <n> s", "spark.task_runner"),
        ),
        "a copy task has ended; the line has the reason. It restarts after about 1, 2, 4 ... 60 s",
        "remove the reason; the restart needs no help",
    ),
    message(
        "spark.task_runner",
        "RUNNING again, after <n> restarts",
        "the task has started after a failure",
        "nothing",
    ),
    message(
        "spark.task_runner",
        "UNASSIGNED: <Spark has n slots for n tasks, or has not started it>",
        "the task waits for Spark",
        "add executors or cores to the Spark cluster, or lower `tasks.max`; if there are slots "
        "enough, look at Spark's own page",
    ),
    message(
        "spark.task_runner",
        "last positions not stored: <reason>",
        "the next start copies the records after the last stored position again",
        "nothing, unless it repeats: then the target or the network is too slow for "
        "`offset.flush.timeout.ms`",
    ),
    message(
        "spark.task_runner",
        "sends nothing any more: killing it",
        "the executor hangs, or the network to it is cut; the task starts elsewhere",
        "check the machine of the executor",
    ),
    Message(
        (
            MessageLine(
                "no lease renewal from the worker: not copying until it comes",
                "spark.copy.copy_task",
            ),
            MessageLine(
                "the worker does not respond: storing positions and stopping",
                "spark.copy.copy_task",
            ),
        ),
        "a task cannot reach its worker and stops writing, because another worker may lead",
        "check the network between executors and worker; the task restarts by itself",
    ),
    message(
        "connect.runtime.worker_connector",
        "connector <name> failed: <error>",
        "the connector cannot start; it is tried again after 1, 2, 4 ... 60 s, and its status has "
        "the trace",
        "the line has the reason",
    ),
    message(
        "connect.thread_task",
        "task <name> failed: <error>",
        "a task cannot start; it is tried again after 1, 2, 4 ... 60 s, and its status has the "
        "trace",
        "the line has the reason",
    ),
    message(
        "spark.session",
        "Spark (<master>) has stopped: <reason>; restart sparkmirror",
        "Spark's JVM has ended, or the cluster removed the application; the process ends with exit "
        "code 1",
        "restart the process, or let its supervisor do so",
    ),
    message(
        "spark.session",
        "Spark: <text>",
        "an error of Spark itself",
        "see [spark-clusters.md](spark-clusters.md)",
    ),
    message(
        "spark.spark_security",
        "Spark's traffic with <master> is neither authenticated nor encrypted",
        "passwords of the Kafka clusters cross the network in the clear",
        "set the keys that the line names: [spark-clusters.md](spark-clusters.md)",
    ),
    message(
        "spark.link.callers",
        "control link: <address> was rejected: <reason>",
        "something that is no task of this worker connects to the port of the control link",
        "let only executors reach that port",
    ),
    message(
        "connect.legacy.legacy_mirror",
        "stands by: <process> copies this flow; this process takes over when it ends",
        "two processes have the same file or group, and this one waits",
        "nothing",
    ),
    message(
        "connect.group.group_place",
        "<worker> has not heard from the group's coordinator on '<alias>': its tasks hold still",
        "the cluster with the group is away; another process may lead by now",
        "check that cluster; the tasks continue when it responds",
    ),
    message(
        "connect.group.group_place",
        "<worker> has lost its place in the group: its tasks end",
        "the process was silent for `session.timeout.ms`; others take over its tasks",
        "check whether it was frozen, or cut off from the cluster",
    ),
    message(
        "connect.group.worker_group_member",
        "trying again: <error>",
        "the process cannot join its group",
        "the line has the reason; READ on the group is needed",
    ),
    message(
        "cli.serving",
        "<address> has no authentication: anyone who can connect can read and change every "
        "connector",
        "the REST API is open to the network",
        "bind it to 127.0.0.1, or set up passwords or TLS client certificates: "
        "[security.md](security.md)",
    ),
    message(
        "rest.guard",
        "login to the REST API from <address> rejected",
        "somebody used a wrong name or password",
        "check who that is",
    ),
    message(
        "rest.transport.connections",
        "the REST server has <n> connections, its maximum, and drops further ones",
        "a client opens connections without closing them",
        "find it with `ss -tn`",
    ),
    message(
        "cli.serving",
        "stopped<, but not all positions could be stored>",
        "the process has ended; with the second half its exit code is 1, and the next start copies "
        "the last records again",
        "the lines before it have the reason",
    ),
    message(
        "logs.repeats",
        "repeated <n times> in the last minute: <text>",
        "more than 60 lines of one kind came from one connector or task; these are counted instead "
        "of shown. A new error is always shown",
        "`--log-level DEBUG` shows all of them",
    ),
    message(
        "spark.copy.copy_task",
        "lease renewed by the worker: copying again",
        "the worker responds again",
        "nothing",
    ),
    Message(
        (
            MessageLine(
                "did not stop in time; killing it: records since its last stored position are "
                "copied again",
                "spark.task_runner",
            ),
            MessageLine(
                "task <name> did not end clean: some may be copied twice", "connect.thread_task"
            ),
            MessageLine("connector <name> did not end in time", "connect.runtime.worker_connector"),
            MessageLine("did not end in time: <flows>", "connect.dedicated.mirror_maker"),
        ),
        "a task or connector waits for a cluster that does not respond",
        "nothing: no record is lost, some may be copied twice",
    ),
    message(
        "spark.link.server",
        "task <name> runs again on <address>; the older attempt is cut off",
        "Spark has started the task again, because it took its executor for lost",
        "check the machine of the earlier executor",
    ),
    message(
        "spark.link.server",
        "[<task>] has no start message: <error>",
        "the positions of the task cannot be read, so that it does not start",
        "the line has the reason; it is tried again",
    ),
    message(
        "spark.link.server",
        "control link: no task can connect: <error>",
        "this machine accepts no more connections, for example because too many files are open",
        "raise `ulimit -n`, or look for what uses them",
    ),
    message(
        "spark.link.callers",
        "control link: further rejected callers are not logged for a minute",
        "there are many of the callers that the lines before it name",
        "let only executors reach that port",
    ),
    message(
        "spark.copy.copy_task",
        "the worker sent a message of unknown type <type>",
        "worker and executor have different versions of sparkmirror",
        "install the same version on all machines",
    ),
    message(
        "spark.spark_security",
        "Spark's traffic with <master> is not encrypted",
        "passwords of the Kafka clusters cross the network in the clear",
        "set the key that the line names: [spark-clusters.md](spark-clusters.md)",
    ),
    message(
        "connect.thread_task",
        "task <name> does not have its new configuration yet: <error>",
        "it runs with the former one, and tries again",
        "the line has the reason",
    ),
    message(
        "connect.runtime.worker_connector",
        "connector <name>: its state cannot be stored: <error>",
        "the connector runs; `GET /connectors/<name>/status` may show an older state",
        "the line has the reason",
    ),
    message(
        "cli.service",
        "stopping at once",
        "the second SIGTERM or Ctrl-C: the process does not wait for its tasks",
        "nothing: the next start copies the records after the last stored positions again",
    ),
    message(
        "rest.exception_mapper",
        "Uncaught exception in REST call to <path>",
        "a bug: the client got status 500",
        "report it with the trace that follows",
    ),
    message(
        "rest.rest_server",
        "the REST server has not ended within <n> s",
        "a request hangs; the process ends all the same",
        "nothing",
    ),
    message(
        "rest.security.tls",
        "TLS rejected a client of the REST API: <reason>",
        "a client has no certificate that this worker trusts, or speaks no TLS",
        "give it one, or correct `listeners.https.ssl.truststore.*`",
    ),
    message(
        "rest.security.tls",
        "ssl.cipher.suites: clients of a listener choose among all suites of TLS 1.3",
        "the list has an effect for TLS 1.2 only",
        "nothing, or remove the key",
    ),
    message(
        "rest.security.users",
        "<error>; the previous users stay valid",
        "the file of users has changed and cannot be read",
        "correct the file: changed passwords have no effect before that",
    ),
    message(
        "rest.worker_resource",
        "Received invalid scope '<scope>' in request to adjust logging level",
        "a client of `PUT /admin/loggers` misspelt `scope`; only this worker's level changed",
        "use `scope=cluster` or `scope=worker`",
    ),
    message(
        "embedded.class_archive",
        "<java> wrote no class archive: slow starts",
        "`sparkmirror demo` and `kafka` start Java programs without their cache",
        "nothing",
    ),
    message(
        "monitoring.metrics.otlp",
        "metrics cannot be pushed to <endpoint>; trying again",
        "the OpenTelemetry collector does not respond or rejects them; copying is not affected",
        "check `sparkmirror.metrics.otlp.endpoint` and the collector",
    ),
)
