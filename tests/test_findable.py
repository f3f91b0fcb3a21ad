"""Who reads a module finds its tests: at the same place below tests/, or where this table says.

The table is one, however long: a row is looked for, and added, in one place.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
#: Where modules are, and where their tests are.
FOLDERS: Final = {"analyzer": "tests", "netns-lab/netns_lab": "tests/lab"}


@dataclass(frozen=True)
class Row:
    """Modules that are tested elsewhere.

    Attributes:
        modules: patterns of paths below the package, without ``.py``.
        tests: below tests/; none where there is nothing that a test could hold.
        why: what these tests do for the modules, or why there is nothing to do.
    """

    modules: str
    tests: str
    why: str


ANALYZER: Final = (
    Row("semantics/iptables/passing", "semantics/iptables/test_traverse.py", "targets, by rules"),
    Row(
        "semantics/nft/nat semantics/nft/operands semantics/nft/rejects",
        "semantics/nft/test_changes.py semantics/nft/test_traverse.py",
        "statements that translate, reject, or look their operands up",
    ),
    Row(
        "reports/diff_answer",
        "reports/test_diff_json.py reports/test_diff_words.py",
        "what differs, as reports tell it",
    ),
    Row("semantics/calls", "semantics/test_hooks.py", "chains are called as the hooks call them"),
    Row(
        "anonymise/naming anonymise/files verbs/anonymise arguments/anonymise",
        "test_cli_anonymise.py",
        "all that is renamed together, as a user sees it",
    ),
    Row(
        "anonymise/nft_values anonymise/nft_names anonymise/nft_keywords",
        "anonymise/test_nft.py",
        "what rulesets hold",
    ),
    Row(
        "verbs/salts",
        "test_cli_anonymise.py arguments/test_collect.py",
        "secrets of names, and their files",
    ),
    Row("anonymise/object_words", "anonymise/test_objects.py", "of objects no other word is kept"),
    Row(
        "anonymise/words",
        "anonymise/test_values.py anonymise/test_nft.py anonymise/test_node_files.py",
        "words of netfilter are kept, and no others",
    ),
    Row(
        "parsers/nft/rendering_json", "parsers/nft/test_round_trip.py", "what it writes reads back"
    ),
    Row(
        "parsers/telling", "parsers/test_careful.py parsers/test_listing.py", "what readers warn of"
    ),
    Row("parsers/listed_rows", "parsers/test_careful.py", "rows in pieces, and lines lost"),
    Row(
        "semantics/option_matching semantics/match_result",
        "semantics/iptables/test_matching.py semantics/test_source_ports.py",
        "what is asked for, absent or negated, and ports",
    ),
    Row(
        "semantics/nft/covering semantics/nft/pairs",
        "semantics/nft/test_matching.py kubeproxy/routes/test_leaving.py",
        "what operands and elements hold; packets that go to where they come from",
    ),
    Row(
        "kubeproxy/matched/nft", "kubeproxy/matched/test_bits.py", "marks that rules of nft ask for"
    ),
    Row("kubeproxy/routes/astray_nft", "kubeproxy/routes/test_astray.py", "of rules of nft too"),
    Row(
        "semantics/nft/header_fields semantics/nft/ct_fields",
        "semantics/nft/test_fields.py",
        "what expressions load, read through `fields`",
    ),
    Row("semantics/way_back", "semantics/test_answers.py", "which hooks answers traverse, as what"),
    Row("semantics/nft/found", "semantics/nft/test_matching.py", "what look-ups of nft find"),
    Row(
        "kubeproxy/matched/dispatched_nft semantics/nft/said",
        "semantics/nft/test_by_device.py",
        "chains of nft to which flows are sent by device",
    ),
    Row(
        "__init__ __main__",
        "test_main.py test_process.py",
        "as a process of its own",
    ),
    Row(
        "arguments/output arguments/input",
        "arguments/test_command_line.py",
        "options that all verbs have",
    ),
    Row(
        "arguments/parser",
        "arguments/test_command_line.py",
        "which words are values of an option",
    ),
    Row("inputs/api_objects", "inputs/test_recognised.py", "files of objects as options name them"),
    Row("inputs/bundle_nodes", "inputs/test_bundle_files.py", "whose files those of a bundle are"),
    Row(
        "inputs/reading",
        "inputs/test_recognised.py test_noise_told.py",
        "files of a node as options name them",
    ),
    Row("output", "test_cli.py", "what is printed, and exit statuses, as a user sees them"),
    Row("arguments/loss", "test_cli_loss_states.py", "thresholds, what counts, and the help"),
    Row("arguments/whatif", "test_cli_whatif.py", "options that are good and bad, and the help"),
    Row(
        "verbs/failures arguments/trace arguments/control_plane arguments/timeline",
        "test_cli_whatif.py test_cli_trace.py test_cli_control_plane.py test_cli_timeline.py",
        "verbs and their options, as a user sees them",
    ),
    Row(
        "questions/predicting arguments/objects verbs/loss_everywhere",
        "test_cli_predicted.py",
        "answers without a dump, as a user sees them",
    ),
    Row(
        "failure/ways failure/vantages failure/loss_at_every_node",
        "failure/test_every_node.py test_cli_predicted.py",
        "what failures cost at every node, against asking each living node in turn",
    ),
    Row(
        "verbs/advise arguments/advise advice/behind",
        "test_cli_advise.py",
        "measures before and after, as a user sees them",
    ),
    Row(
        "reports/advise_answer reports/advise_json reports/advise_text reports/advise_tsv",
        "test_cli_advise.py golden/test_commands.py",
        "measures before and after, in each format",
    ),
    Row(
        "verbs/gate arguments/gate questions/gating gate/reasons gate/services gate/ports "
        "gate/api_shapes gate/unseen",
        "test_cli_gate.py test_cli_gate_input.py test_cli_gate_nodes.py test_cli_gate_workloads.py "
        "test_cli_gate_unseen.py gate/test_manifests.py gate/test_shapes.py",
        "manifests and nodes as people give them, and what is said of them",
    ),
    Row(
        "gate/adversary gate/bounds gate/cases gate/every gate/failing gate/problem gate/state "
        "gate/evaluation gate/compiling gate/scaling gate/relations gate/spreads gate/templates "
        "gate/wishes",
        "gate/test_worst.py gate/test_manifests.py",
        "no placement is worse than the worst, by a program that tries them all",
    ),
    Row(
        "reports/gate_*",
        "test_cli_gate_formats.py golden/test_commands.py",
        "verdicts in each format",
    ),
    Row(
        "advice/advise advice/hints advice/measure advice/measures/* "
        "advice/objects advice/placing advice/proxied advice/scores advice/takers advice/zones",
        "advice/test_measures.py",
        "what each measure changes, its laws, and its numbers against a naive look",
    ),
    Row(
        "verbs/flows arguments/flow questions/tracking failure/tracked reports/flow_answers "
        "reports/suspects_json reports/suspects_text reports/pinned_json reports/pinned_text",
        "test_cli_flows.py golden/test_commands.py",
        "what conntrack says beside the rules, as a user sees it",
    ),
    Row("model/conntrack", "parsers/test_conntrack.py", "plain values, which that reader makes"),
    Row(
        "verbs/repair questions/repairing questions/repairable arguments/repair repair/leftover "
        "reports/repair_answer reports/repair_json reports/repair_text",
        "test_cli_repair.py golden/test_commands.py",
        "what is printed for a node, as a user sees it",
    ),
    Row(
        "repair/applied repair/chains repair/draws repair/nft_text repair/patch repair/witness",
        "repair/test_iptables.py repair/test_nft.py",
        "parts of repairs, which are judged whole, by the analyzer's own reading of the result",
    ),
    Row(
        "verbs/client verbs/client_names verbs/client_assumed arguments/client clients/callers "
        "clients/operations",
        "test_cli_client.py",
        "what clients see, as a user sees it: who calls, from where, what they do",
    ),
    Row(
        "clients/connectors clients/look_up clients/outcome clients/plan "
        "clients/resolvers clients/target",
        "clients/test_plans.py lab/test_client_plans.py",
        "plans beside clients that are played step by step, their laws, and real programs",
    ),
    Row(
        "model/journeys model/resolv_conf parsers/journeys parsers/resolv_conf parsers/callers",
        "test_cli_client.py",
        "files of a person's own: what they say, and where they are wrong",
    ),
    Row("verbs/trace", "test_cli_trace.py", "as a user sees it"),
    Row("verbs/tree", "test_cli.py golden/test_commands.py", "as a user sees it"),
    Row("verbs/diff", "test_cli_diff.py", "as a user sees it"),
    Row("verbs/explore arguments/explore", "test_explorer.py", "as a user sees it, key by key"),
    Row(
        "arguments/cluster cluster/asking cluster/folder cluster/from_dumps cluster/store "
        "cluster/tables",
        "verbs/test_cluster.py node_dumps/test_build.py",
        "verbs of a whole cluster, as a user sees them, and its tables",
    ),
    Row(
        "node_dumps/worker node_dumps/sources cluster/engines",
        "node_dumps/test_build.py",
        "which dumps are read, by whom, and what happens when a worker dies",
    ),
    Row(
        "kubeproxy/proxy_mode",
        "kubeproxy/test_iptables.py kubeproxy/test_nftables.py",
        "which mode rules show, and which they show none of",
    ),
    Row(
        "kubeproxy/fastpath/nft_hairpins kubeproxy/fastpath/nft_hosts",
        "kubeproxy/routes/test_hairpins.py",
        "what pods of nftables mode get back from themselves",
    ),
    Row(
        "cluster/pieces cluster/reference kubeproxy/fastpath/grounds",
        "node_dumps/test_alike.py",
        "dumps nearly alike",
    ),
    Row(
        "cluster/drift_kinds cluster/drift_nodes "
        "reports/cluster_drift_answer reports/cluster_drift_json "
        "reports/cluster_drift_text reports/cluster_drift_tsv",
        "questions/test_cluster_drift.py golden/test_commands.py",
        "every kind of difference, seeded and found",
    ),
    Row("cluster/facts", "node_dumps/test_alike.py", "what nodes have in common"),
    Row(
        "node_dumps/looks verbs/cluster_dead_windows verbs/cluster_timeline_changes "
        "verbs/cluster_timeline_notes "
        "parsers/clock_times "
        "reports/cluster_timeline_answer reports/cluster_timeline_json "
        "reports/cluster_timeline_text reports/cluster_timeline_tsv",
        "verbs/test_cluster_timeline.py golden/test_commands.py",
        "dumps with times: whose, of when, and what that cost, as a user sees it",
    ),
    Row(
        "verbs/watch arguments/watch watching/signals reports/prometheus reports/watch_answer "
        "reports/watch_npd reports/watch_prometheus",
        "test_cli_watch.py",
        "looks as a monitoring system sees them, and signals",
    ),
    Row(
        "watching/checks watching/drifting watching/taken",
        "watching/test_watch.py",
        "parts of one look, beside looks that keep nothing",
    ),
    Row(
        "inputs/whole",
        "node_dumps/test_build.py watching/test_watch.py",
        "all dumps of a node together",
    ),
    Row(
        "reports/cluster_build_answer reports/cluster_build_json reports/cluster_build_text "
        "reports/cluster_sql_answer reports/cluster_sql_json reports/cluster_sql_text "
        "reports/cluster_sql_tsv",
        "golden/test_commands.py verbs/test_cluster.py",
        "in each format",
    ),
    Row(
        "questions/evaluating",
        "test_cli_loss_states.py",
        "its words as they stand on the command line",
    ),
    # --- the model
    Row(
        "model/iptables/matches model/iptables/targets",
        "parsers/test_xt.py semantics/iptables/test_matching.py",
        "plain values: read, printed and judged there",
    ),
    Row(
        "model/nft/expressions model/nft/statements",
        "parsers/nft/test_round_trip.py semantics/nft/test_matching.py",
        "plain values: read, printed and judged there",
    ),
    Row(
        "kubeproxy/routes/destinations",
        "kubeproxy/routes/test_leaving.py",
        "packets to many, against each",
    ),
    Row("kubeproxy/rows/drawn", "test_cli_flows.py", "counters of two takes, of files and bundles"),
    Row("kubeproxy/untold", "test_cli_missing_tables.py", "what thresholds do not pass on"),
    Row("model/ipsets", "parsers/test_ipset_save.py", "plain values, which that reader makes"),
    Row("model/roles", "parsers/test_roles.py", "plain values, which that reader makes"),
    Row("model/workloads", "parsers/test_workloads.py", "plain values, which that reader makes"),
    Row("model/services", "parsers/test_services.py", "plain values, which that reader makes"),
    # --- readers
    Row(
        "parsers/xt/extension parsers/xt/matches/* parsers/xt/targets/*",
        "parsers/test_xt.py",
        "cases of fixtures/xt/NAME.t and fixtures/xt/targets/NAME.t, one file for each",
    ),
    Row(
        "parsers/nft/__init__ parsers/nft/extension parsers/nft/rendering "
        "parsers/nft/counter parsers/nft/ct parsers/nft/ct_count parsers/nft/dup "
        "parsers/nft/exthdr parsers/nft/fib parsers/nft/flow parsers/nft/fwd parsers/nft/hash "
        "parsers/nft/ipsec parsers/nft/limit parsers/nft/log parsers/nft/mangle parsers/nft/meta "
        "parsers/nft/nat parsers/nft/notrack parsers/nft/numgen parsers/nft/objref "
        "parsers/nft/osf parsers/nft/payload parsers/nft/queue parsers/nft/quota "
        "parsers/nft/reject parsers/nft/rt parsers/nft/set_update parsers/nft/socket "
        "parsers/nft/tproxy parsers/nft/vmap parsers/nft/xt",
        "parsers/nft/test_round_trip.py parsers/nft/test_captures.py",
        "each expression and statement survives its text and its JSON, which shares no code "
        "with the readers; and what nft prints of all kinds, in both forms, is one model",
    ),
    Row(
        "parsers/listed_rule parsers/listed_matches parsers/listed_targets",
        "parsers/test_listing.py lab/test_listings.py lab/test_round_trip.py",
        "rows of listings, against rules and against what the real iptables lists",
    ),
    Row(
        "parsers/unpacking parsers/bundled",
        "test_hostile_archives.py inputs/test_bundle_files.py reports/test_freshness.py",
        "archives that do harm, and files of bundles told by content",
    ),
    Row("parsers/open_table", "parsers/test_careful.py", "a part of what that reader does"),
    # --- meaning
    Row(
        "semantics/sums semantics/tree",
        "semantics/test_shares.py",
        "bounds of whole trees, against every distribution that they allow",
    ),
    Row(
        "semantics/nft/rule", "semantics/nft/test_traverse.py", "one rule of the walk tested there"
    ),
    Row(
        "semantics/parts semantics/conditions",
        "semantics/test_by_source.py",
        "parts of sources, by walks that tell them apart",
    ),
    # --- Services out of rules
    Row(
        "kubeproxy/dispatch/host_ports kubeproxy/routes/untracked",
        "test_noise_told.py",
        "nodes with portmap and NodeLocal DNSCache, as a user sees them",
    ),
    Row(
        "kubeproxy/matched/devices kubeproxy/matched/sets",
        "test_noise_told.py semantics/nft/test_devices.py",
        "devices and sets that rules name, by what that makes of flows",
    ),
    Row(
        "kubeproxy/check/affinity kubeproxy/check/chains kubeproxy/check/draws "
        "kubeproxy/check/endpoints kubeproxy/check/entry kubeproxy/check/external "
        "kubeproxy/check/facts kubeproxy/check/findings kubeproxy/check/frontends "
        "kubeproxy/check/hashes kubeproxy/check/leftovers "
        "kubeproxy/check/masquerade kubeproxy/check/objects kubeproxy/check/refusal "
        "kubeproxy/check/probabilities kubeproxy/check/usual",
        "kubeproxy/test_check.py",
        "each invariant is silent on clean dumps, and names every kind of fault put into them",
    ),
    Row(
        "kubeproxy/diff/changes kubeproxy/diff/difference kubeproxy/diff/dumps "
        "kubeproxy/diff/expected kubeproxy/diff/side",
        "kubeproxy/diff/test_compare.py kubeproxy/diff/test_edits.py kubeproxy/diff/test_modes.py",
        "two sides compared: what an edit of the objects implies is what differs",
    ),
    Row(
        "kubeproxy/generate/*",
        "kubeproxy/test_generate.py kubeproxy/test_generate_nft.py",
        "rules made of a capture's objects are the captured rules, line by line",
    ),
    Row(
        "kubeproxy/routes/flows kubeproxy/routes/before_dnat kubeproxy/routes/packets "
        "kubeproxy/routes/up_to_nat kubeproxy/routes/sent "
        "kubeproxy/dispatch/iptables "
        "kubeproxy/iptables_notes kubeproxy/fastpath/iptables kubeproxy/fastpath/masquerade "
        "kubeproxy/routes/walks",
        "kubeproxy/test_iptables.py kubeproxy/routes/test_sources.py kubeproxy/test_round_trip.py",
        "steps of the recogniser of iptables mode, which is asked as a whole",
    ),
    Row(
        "kubeproxy/dispatch/nft_clients",
        "kubeproxy/test_nftables.py kubeproxy/test_nft_sources.py",
        "networks that are spared and clients that are kept, by the Services that come out",
    ),
    Row(
        "kubeproxy/predict/lists kubeproxy/predict/reaches kubeproxy/predict/relations "
        "kubeproxy/predict/templates kubeproxy/predict/walked",
        "kubeproxy/predict/test_every_node.py kubeproxy/predict/test_captures.py",
        "steps of one prediction, which is held against walks of whole dumps and captures",
    ),
    Row(
        "kubeproxy/predict/assumptions kubeproxy/predict/cluster kubeproxy/predict/settings",
        "test_cli_predicted.py",
        "what is said, assumed and refused, as a user sees it",
    ),
    Row(
        "kubeproxy/fastpath/around kubeproxy/fastpath/classes",
        "kubeproxy/fastpath/test_alike.py",
        "what one walk of a class is carried to",
    ),
    Row(
        "kubeproxy/rows/shapes", "kubeproxy/rows/test_endpoints.py", "shapes of rows, of real rows"
    ),
    Row(
        "kubeproxy/dispatch/nft kubeproxy/nft_family kubeproxy/dispatch/nft_frame",
        "kubeproxy/test_nftables.py kubeproxy/test_nft_round_trip.py kubeproxy/test_nft_edited.py",
        "steps of the recogniser of nftables mode, which is asked as a whole",
    ),
    # --- the command line
    Row("arguments/examples", "test_help.py", "lines of help, each of which is run"),
    # --- reports
    Row(
        "reports/answers reports/lab_answers reports/cluster_answer",
        "reports/test_renderers.py",
        "plain values, one for each verb",
    ),
    Row(
        "reports/clients_json reports/lab_json reports/trace_json",
        "reports/test_renderers.py golden/test_schemas.py golden/test_commands.py",
        "each document follows its schema, and stands in a golden file",
    ),
    Row(
        "reports/loss_nowhere reports/loss_overview reports/loss_rows reports/loss_summary "
        "reports/loss_words",
        "reports/test_loss_text.py test_cli_loss.py test_cli_loss_overview.py",
        "parts of one report, which is asked as a whole",
    ),
    Row(
        "reports/loss_nodes_json reports/loss_nodes_text reports/loss_nodes_tsv",
        "verbs/test_loss.py reports/test_renderers.py golden/test_commands.py",
        "nodes that are alike, unlike, dead or not judged, in each format",
    ),
    Row(
        "reports/loss_cluster_json reports/loss_cluster_text reports/loss_cluster_tsv "
        "reports/predicted_json reports/predicted_text reports/whatif_vantages "
        "reports/whatif_ways",
        "test_cli_predicted.py reports/test_renderers.py golden/test_commands.py",
        "answers about every node, in each format",
    ),
    Row(
        "reports/whatif_breaches reports/whatif_junit reports/whatif_order "
        "reports/whatif_prometheus reports/whatif_summary reports/whatif_tsv",
        "test_cli_whatif.py golden/test_commands.py",
        "orders, thresholds and hostile names in each format, which stands in a golden file",
    ),
    Row(
        "reports/components_json reports/components_text reports/control_plane_json "
        "reports/control_plane_text",
        "test_cli_control_plane.py golden/test_commands.py golden/test_pages.py",
        "parts of reports, which are asked as a whole, and stand in golden files",
    ),
    Row(
        "reports/timeline_json reports/timeline_text",
        "test_cli_timeline.py golden/test_commands.py golden/test_pages.py",
        "reports that stand in golden files and on a page",
    ),
    Row(
        "reports/client_answer reports/client_json reports/client_text reports/client_words",
        "test_cli_client.py golden/test_commands.py golden/test_pages.py",
        "reports that stand in golden files and on a page",
    ),
    Row(
        "reports/junit reports/lab_verify_junit reports/lab_verify_text",
        "lab/test_verify.py reports/test_renderers.py",
        "what a run on the kernel prints, and hostile names in each format",
    ),
    Row(
        "reports/pages/diff "
        "reports/pages/explorer reports/pages/figure reports/pages/lab "
        "reports/pages/lab_verify reports/pages/loss "
        "reports/pages/loss_cluster reports/pages/loss_nodes reports/pages/timeline "
        "reports/pages/trace reports/pages/tree reports/pages/trees reports/pages/whatif",
        "reports/pages/test_frame.py golden/test_commands.py",
        "what all pages promise; each stands in a golden file, and CI opens them in a browser",
    ),
    Row(
        "reports/pictures/cells reports/pictures/curves reports/pictures/heat "
        "reports/pictures/icicle reports/pictures/measured reports/pictures/route "
        "reports/pictures/svg reports/timeline_svg reports/tree_svg reports/whatif_svg",
        "reports/test_pictures.py golden/test_commands.py",
        "lengths are shares, nothing is loaded, names are text; each stands in a golden file",
    ),
    Row(
        "reports/pages/incidence",
        "pages/test_losses.py pages/test_numbers.py",
        "what scripts of a page compute of it, beside what `loss` says",
    ),
    Row(
        "reports/lab_repair_json reports/lab_repair_text",
        "lab/test_repair.py reports/test_renderers.py",
        "what a repair did on the kernel",
    ),
    Row(
        "model/lab_phases reports/lab_phases_answer reports/lab_phases_json",
        "lab/test_phases.py lab/test_schedule.py reports/test_renderers.py",
        "what a run in which things happen found, as it is run and as it is judged",
    ),
    Row(
        "model/lab_pcap reports/lab_pcap_answer reports/lab_pcap_json",
        "lab/test_pcap_run.py reports/test_lab_pcap_text.py reports/test_renderers.py",
        "what a replay of a capture found, as it is run",
    ),
    Row("model/flow_trace", "lab/test_traced.py", "what the kernel told of a flow"),
    Row("reports/not_judged", "test_cli_loss.py", "what is not judged, by the lines that say so"),
    Row(
        "reports/clients_text reports/diff_beside reports/diff_text reports/services_text",
        "golden/test_commands.py reports/test_renderers.py",
        "each report stands in a golden file; its parts have tests of their own",
    ),
)
LAB: Final = (
    Row("programs naming", "lab/test_clients.py lab/test_shell.py", "programs and names, as run"),
    Row(
        "arguments",
        "lab/test_verify.py test_help.py",
        "options that are good and bad, the help",
    ),
    Row("inside", "lab/test_safety.py lab/test_shell.py", "what a program sees, and how it ends"),
    Row("delays dying", "lab/test_deaths.py", "deaths, and what a client's sockets see"),
    Row(
        "buckets connections followed followed_routes phased",
        "lab/test_phases.py",
        "parts of a run in which things happen, which is run whole",
    ),
    Row("expecting", "lab/test_schedule.py", "connections, beside a naive kernel that doubles"),
    Row(
        "captured captured_run replaying standing",
        "lab/test_pcap_run.py",
        "parts of a replay of a capture, which is run whole on the kernel",
    ),
    Row(
        "saved_fields saved_phases",
        "lab/test_saved.py",
        "parts of documents, which are read and judged whole",
    ),
    Row("listening", "lab/test_ending.py lab/test_traced.py", "what one flow matched"),
    Row("beyond gates", "lab/test_two_nodes.py", "flows through the rules of two nodes"),
    Row("restoring", "lab/test_loading.py", "what does not load as it stands"),
    Row("places", "lab/test_shell.py", "where programs of `lab shell` run"),
    Row("established repairing", "lab/test_repair.py", "a repair proved while flows go on"),
    Row("pod_devices", "lab/test_noise.py", "nodes with rules of others, in the kernel"),
    Row(
        "accounts asked backend cli command count errors experiment measure plan ready servers "
        "topology wanted",
        "lab/test_run.py",
        "parts of one experiment, which is run whole on the kernel",
    ),
    Row(
        "counted iptables nft_counters xt_entries",
        "lab/test_counters.py",
        "rules loaded and their counters read",
    ),
    Row(
        "filters layout messages netlink ring",
        "lab/test_engine.py lab/test_replay.py",
        "parts of what sends and hears packets",
    ),
    Row("reasons", "lab/test_verify.py", "every route is sent from somewhere or named"),
    Row("namespace", "lab/test_safety.py", "namespaces that leave nothing behind"),
    Row("nft", "lab/test_nft_rules.py", "rulesets loaded with and without the library"),
    Row("trace", "lab/test_kernel_check.py lab/test_nft_check.py", "ways that the kernel traced"),
    Row(
        "bench bench_cases bench_cluster bench_watch bench_lab bench_noise bench_objects "
        "bench_scapy bench_walk bench_whatif contender",
        "",
        "prints times, by hand; no part of an answer",
    ),
)
TABLES: Final = dict(zip(FOLDERS, (ANALYZER, LAB), strict=True))

folders = pytest.mark.parametrize("folder", FOLDERS)


def modules(folder: str) -> Iterator[str]:
    """Give each module by its path below the package; of packages those that hold anything."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        if path.name != "__init__.py" or _holds_anything(path):
            yield path.relative_to(ROOT / folder).with_suffix("").as_posix()


def _holds_anything(package: Path) -> bool:
    says = ast.parse(package.read_text(encoding="utf-8")).body
    return any(isinstance(each, ast.Assign | ast.AnnAssign) for each in says)


def own_test(folder: str, module: str) -> Path:
    place = ROOT / FOLDERS[folder] / module
    return place.with_name(f"test_{place.name}.py")


def elsewhere(module: str, table: Collection[Row]) -> list[str]:
    """Return the patterns that name a module."""
    return [each for row in table for each in row.modules.split() if fnmatchcase(module, each)]


@folders
def test_every_module_has_its_test_at_the_same_place_or_a_row(folder: str) -> None:
    missing = [
        f"{folder}/{module}.py: no {own_test(folder, module).relative_to(ROOT)}, and no row here"
        for module in modules(folder)
        if not own_test(folder, module).exists() and not elsewhere(module, TABLES[folder])
    ]
    assert not missing, "\n".join(missing)


@folders
def test_no_module_has_both_or_two_rows(folder: str) -> None:
    twice = [
        f"{folder}/{module}.py: {found}"
        for module in modules(folder)
        for found in [elsewhere(module, TABLES[folder])]
        if len(found) + own_test(folder, module).exists() > 1
    ]
    assert not twice, "\n".join(twice)


@folders
def test_every_pattern_names_a_module(folder: str) -> None:
    there = list(modules(folder))
    idle = [
        pattern
        for row in TABLES[folder]
        for pattern in row.modules.split()
        if not any(fnmatchcase(module, pattern) for module in there)
    ]
    assert idle == []


@folders
def test_every_row_names_tests_that_there_are(folder: str) -> None:
    gone = [
        name
        for row in TABLES[folder]
        for name in row.tests.split()
        if not (ROOT / "tests" / name).exists()
    ]
    assert gone == []


def imported(source: str) -> Iterator[str]:
    """Give the full names that a file imports, at its top or later."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{each.name}" for each in node.names)


def test_what_tests_share_is_in_support_and_not_in_test_files() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for name in imported(path.read_text(encoding="utf-8"))
        if name.startswith("tests.") and ".test_" in name
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "statement",
    ["import tests.test_a", "from tests import test_a", "from tests.b.test_a import c"],
)
def test_each_way_to_import_a_test_file_is_seen(statement: str) -> None:
    (name,) = imported(f"def f():\n    {statement}\n")
    assert name.startswith("tests.")
    assert "test_a" in name
