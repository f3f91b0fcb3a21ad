"""Example command lines at the end of each verb's help."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: By verb; tests run them.
EXAMPLES: Final = {
    "services": (
        "kubeodds services dump.txt --objects objects.json",
        "kubeodds services dump.txt --service kube-dns -o json",
        "kubeodds services dump.txt --objects objects.json --check",
    ),
    "tree": (
        "kubeodds tree dump.txt kube-dns:dns",
        "kubeodds tree dump.txt default/app --objects objects.json --dead-node master",
        "kubeodds tree dump.txt app -o svg > app.svg",
    ),
    "trace": (
        "kubeodds trace dump.txt --from pod --to kube-dns:53 --protocol udp",
        "kubeodds trace dump.txt --from-node --to 10.96.0.1:443 --node-ip 192.168.0.11",
        "kubeodds trace dump.txt --from pod --to app --objects objects.json --dead-node master",
    ),
    "loss": (
        "kubeodds loss dump.txt --objects objects.json --dead-node master",
        "kubeodds loss dump.txt --node-of 10.244.0.0/24=master --dead-node master --service kube*",
        "kubeodds loss dump.txt --dead 10.244.0.3,10.244.0.7 --max-loss 60%",
    ),
    "whatif": (
        "kubeodds whatif dump.txt --objects objects.json",
        "kubeodds whatif dump.txt --objects objects.json --only node,set -o html > whatif.html",
        "kubeodds whatif dump.txt --objects objects.json --min-survives 2 -o junit",
    ),
    "timeline": (
        "kubeodds timeline dump.txt --objects objects.json --dead-node master --rate 200/s",
        "kubeodds timeline dump.txt --objects objects.json --dead-node worker1 --start-up 10s-1m",
        "kubeodds timeline dump.txt --objects objects.json --dead-node master --api-back-after 20m",
    ),
    "advise": (
        "kubeodds advise --from-objects objects.json",
        "kubeodds advise --from-objects objects.json --service app --dead-node master",
        "kubeodds advise --from-objects objects.json --service app --objects-of local",
    ),
    "gate": (
        "kubeodds gate manifests.yaml --nodes nodes.json",
        "kubeodds gate manifests.yaml --nodes 3xzone=a,3xzone=b --max-loss 50% --min-survives 1",
        "kubeodds gate manifests.yaml --nodes nodes.json --max-loss 50% -o sarif > gate.sarif",
    ),
    "client": (
        "kubeodds client dump.txt --objects objects.json --dead-node master",
        "kubeodds client dump.txt --dead 10.244.0.3 --client glibc,musl --lookup app.default",
        "kubeodds client dump.txt --dead 10.244.0.7 --service app --client tcp --timeout 3s --all",
    ),
    "diff": (
        "kubeodds diff dump.txt later.txt",
        "kubeodds diff dump.txt ruleset.nft --objects objects.json --node worker1",
        "kubeodds diff dump.txt master.txt --objects objects.json --node worker1 --node-b master",
    ),
    "explore": (
        "kubeodds explore dump.txt --objects objects.json",
        "kubeodds explore dump.txt --objects objects.json --dead-node master",
        "kubeodds explore dump.txt --objects objects.json --service kube-dns",
    ),
    "collect": (
        "kubeodds collect --twice 10s | ssh node1 'sudo sh -s -- -' > node1.tar.gz",
        "kubeodds collect | nsenter -t 1 -m -u -n sh -s -- /tmp/node1.tar.gz",
        "kubeodds collect | kubectl debug node/node1 -qi --image=busybox --profile=sysadmin "
        "-- chroot /host sh -s -- /tmp/node1.tar.gz",
    ),
    "suspects": (
        "kubeodds suspects dump.txt --conntrack conntrack.txt",
        "kubeodds suspects dump.txt --conntrack conntrack.txt --objects objects.json --all",
        "kubeodds suspects dump.txt --conntrack conntrack.txt -o json",
    ),
    "pinned": (
        "kubeodds pinned dump.txt --conntrack conntrack.txt --dead 10.244.0.7",
        "kubeodds pinned dump.txt --conntrack conntrack.txt --objects objects.json "
        "--dead-node master",
        "kubeodds pinned dump.txt --conntrack conntrack.txt --dead 10.244.0.7 -o json",
    ),
    "repair": (
        "kubeodds repair dump.txt --objects objects.json --dead-node master",
        "kubeodds repair dump.txt --dead 10.244.0.7 --print undo",
        "kubeodds repair dump.txt --dead 10.244.0.7 --print conntrack",
    ),
    "anonymise": (
        "kubeodds anonymise dump.txt --salt-file salt",
        "kubeodds anonymise objects.json --salt-file salt --map map.json",
        "kubeodds anonymise ruleset.nft --every-name | gzip > shown.nft.gz",
    ),
    "watch": (
        "kubeodds watch --command 'cat dump.txt' --dead 10.244.0.7 --per-service affected --once",
        "kubeodds watch --rules dump.txt --objects objects.json --dead-node master --once",
        "kubeodds watch --rules dump.txt --objects objects.json --node worker1 --npd",
    ),
    "completion": (
        "kubeodds completion bash | sudo tee /usr/share/bash-completion/completions/kubeodds",
        "kubeodds completion zsh | sudo tee /usr/local/share/zsh/site-functions/_kubeodds",
        "kubeodds completion fish | source",
    ),
}
